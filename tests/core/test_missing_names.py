"""Hints at attributes and keys that an object lacks."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from aioinformer import KubeObject, SharedInformer
from aioinformer._core.missing_names import (
    Missing,
    declare_missing,
    mapping_hints,
    missing_key,
)
from aioinformer._core.objects.readonly import freeze
from tests.core.builders import make_object, pod_body


def pod() -> Any:
    return make_object(pod_body("web-0"))


def test_a_misspelt_key_is_corrected() -> None:
    with pytest.raises(KeyError, match="'specs'; did you mean 'spec'"):
        pod()["specs"]
    for wrong in ("nodename", "node_name", "NodeName"):
        with pytest.raises(KeyError, match=f"'{wrong}'; did you mean 'nodeName'"):
            pod()["spec"][wrong]
    with pytest.raises(KeyError, match=r"^'x'$"):
        pod()["spec"]["x"]


def test_the_error_of_a_missing_key_is_a_key_error() -> None:
    with pytest.raises(KeyError) as caught:
        freeze({"nodeName": "node-1"})["nodename"]
    assert type(caught.value) is KeyError
    assert caught.value.args == ("nodename",)
    assert pickle.loads(pickle.dumps(caught.value)).args == ("nodename",)  # noqa: S301 - our own
    number: Any = 5
    with pytest.raises(KeyError, match=r"^5$"):
        freeze({})[number]


def test_absent_keys_have_defaults() -> None:
    view = freeze({"present": {"a": 1}})
    assert (view.get("absent"), view.get("absent", 3), view.get("present")) == (None, 3, {"a": 1})
    assert "absent" not in view


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("spec", "obj['spec']"),
        ("nodeName", "obj['spec']['nodeName']"),
        ("phase", "obj['status']['phase']"),
        ("replicas", "obj['spec']['replicas']"),
    ],
)
def test_attributes_of_generated_models_are_translated(name: str, instead: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(pod(), name)
    assert f"a KubeObject has no attribute {name!r}: it is a mapping, write {instead}" in str(
        caught.value
    )
    assert not hasattr(pod(), name)
    assert name not in dir(pod())


def test_a_part_of_an_object_has_the_same_hint() -> None:
    with pytest.raises(AttributeError, match=r"FrozenMapping has no .* write obj\['nodeName'\]"):
        pod()["spec"].nodeName  # noqa: B018 - the read is the test


def test_hints_are_declared_for_any_class() -> None:
    class Shelf:
        width = 1

    hints = mapping_hints("spec", "size")
    assert hints == {
        "spec": "it is a mapping, write obj['spec']",
        "size": "it is a mapping, write obj['size']",
    }
    hints |= mapping_hints("depth", parent="obj['spec']", others="; or width")
    declare_missing(Shelf, hints)
    expected = {
        "spec": "it is a mapping, write obj['spec']",
        "size": "it is a mapping, write obj['size']",
        "depth": "it is a mapping, write obj['spec']['depth']; or width",
    }
    for owner in (Shelf, Shelf()):
        for name, hint in expected.items():
            with pytest.raises(AttributeError) as caught:
                getattr(owner, name)
            assert str(caught.value) == f"a Shelf has no attribute {name!r}: {hint}"
        assert not hasattr(owner, "spec")
    assert Shelf.width == 1
    assert all(isinstance(vars(Shelf)[name], Missing) for name in hints)


def test_a_key_is_corrected_whatever_its_case_and_its_separators_are() -> None:
    known = {"node-name": 1, "host_network": 2, "dnsPolicy": 3}
    for wrong, meant in (
        ("NODENAME", "node-name"),
        ("node_name", "node-name"),
        ("hostNetwork", "host_network"),
        ("host-network", "host_network"),
        ("dns_policy", "dnsPolicy"),
        ("dns-Polizy", "dnsPolicy"),
    ):
        error = missing_key(wrong, known)
        assert str(error) == f"{wrong!r}; did you mean {meant!r}?"
        assert error.args == (wrong,)
    assert str(missing_key("volumes", known)) == "'volumes'"


@pytest.mark.parametrize("separator", ["_", "-"])
def test_a_key_with_other_separators_comes_before_a_similar_one(separator: str) -> None:
    meant = f"pod{separator}ip{separator}s"
    error = missing_key("podIPs", {"podIPsX": 1, meant: 2})
    assert str(error) == f"'podIPs'; did you mean {meant!r}?"


@pytest.mark.parametrize("name", ["list", "get", "by_index"])
def test_reads_of_an_informer_lead_to_its_lister(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"write informer\.lister\.{name}\(\.\.\.\)"):
        getattr(SharedInformer, name)
    assert KubeObject.get is not None, "a mapping has a get() of its own"
