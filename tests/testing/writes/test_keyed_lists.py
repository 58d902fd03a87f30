"""Tests of the keyed lists of applied configurations, in which no key may occur twice."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ServerFailure
from aioinformer.testing.wire.encoding import Encoding
from aioinformer.testing.writes.keyed_lists import check_keyed_lists
from tests.testing.recorded_exchanges import WIDGETS

PODS = Encoding(find_built_in("pods"))


def pod(*containers: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "namespace": "web", **metadata},
        "spec": {"containers": [*containers]},
    }


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            pod({"name": "c"}, {"name": "c"}),
            '.spec.containers: duplicate entries for key [name="c"]',
        ),
        (pod({}, {}), '.spec.containers: duplicate entries for key [name=""]'),
        (
            pod({"name": "c", "env": [{"name": "E"}, {"name": "E"}]}),
            '.spec.containers[name="c"].env: duplicate entries for key [name="E"]',
        ),
        (
            pod(5),
            ".spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        (
            pod(None),
            ".spec.containers: element 0: associative list with keys may not have a null element",
        ),
        (
            pod(finalizers=["a/b", "a/b"]),
            '.metadata.finalizers: duplicate entries for key [="a/b"]',
        ),
    ],
)
def test_items_with_one_key_are_an_error(config: dict[str, Any], text: str) -> None:
    with pytest.raises(ServerFailure) as caught:
        check_keyed_lists(PODS, config)
    assert caught.value.status.message == (
        f"failed to create typed patch object (web/a; /v1, Kind=Pod): {text}"
    )


def test_items_with_different_keys_and_lists_without_keys_are_valid() -> None:
    check_keyed_lists(PODS, pod({"name": "c", "args": ["x", "x"]}, {"name": "d"}))
    check_keyed_lists(PODS, pod({}))
    widget = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}, {"name": "c"}]}}
    check_keyed_lists(Encoding(WIDGETS), widget)
