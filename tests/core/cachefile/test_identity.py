"""The identities of stored states."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aioinformer._core.cachefile.identity import ClusterIdentity, describe_function, scope_identity
from aioinformer._core.objects.kube_object import KubeObject
from tests.core.builders import NODES, PODS


@pytest.mark.parametrize(
    ("stored", "found", "same"),
    [
        (("u1", "e1"), ("u1", "e2"), True),
        (("u1", "e1"), ("u2", "e1"), False),
        (("u1", "e1"), ("", "e1"), True),
        (("", "e1"), ("u1", "e2"), False),
        (("", ""), ("", ""), False),
    ],
)
def test_the_uid_decides_if_both_are_known_and_the_endpoint_otherwise(
    stored: tuple[str, str], found: tuple[str, str], same: bool
) -> None:
    assert ClusterIdentity(*stored).matches(ClusterIdentity(*found)) is same


def keep_all(obj: KubeObject) -> KubeObject:
    return obj


def drop_some(obj: KubeObject) -> KubeObject | None:
    return obj if obj.name in {"a", "b", "c"} else None


def test_the_resource_the_selection_and_the_transform_are_parts_of_a_scopes_identity() -> None:
    identities = {
        scope_identity(PODS, {}, None),
        scope_identity(NODES, {}, None),
        scope_identity(PODS, {"namespace": "web"}, None),
        scope_identity(PODS, {}, keep_all),
        scope_identity(PODS, {}, drop_some),
    }
    assert len(identities) == 5
    assert scope_identity(PODS, {"a": "1", "b": "2"}, keep_all) == scope_identity(
        PODS, {"b": "2", "a": "1"}, keep_all
    )


def test_a_function_is_described_alike_in_each_process() -> None:
    code = (
        "from aioinformer._core.cachefile.identity import describe_function\n"
        "from tests.core.cachefile.test_identity import drop_some\n"
        "print(describe_function(drop_some))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    }
    assert shown == {describe_function(drop_some)}


def test_another_code_of_a_function_makes_another_description() -> None:
    texts: list[str] = []
    for limit in (1, 2):
        names: dict[str, object] = {"__name__": "program"}
        exec(f"def transform(obj):\n    return obj if len(obj.name) > {limit} else None", names)  # noqa: S102
        function = names["transform"]
        assert callable(function)
        texts.append(describe_function(function))
    assert texts[0] != texts[1]
    assert texts[0].startswith("program.transform:")


def test_an_object_that_is_callable_is_described_by_its_class() -> None:
    class Transform:
        def __call__(self, obj: KubeObject) -> KubeObject:
            return obj

    assert "Transform" in describe_function(Transform())
