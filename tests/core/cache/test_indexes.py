"""The index by label."""

from __future__ import annotations

import pytest

from aioinformer import label_index
from aioinformer.errors import ObjectDecodeError
from tests.core.builders import make_object, pod, pod_body

POD = pod("a", labels={"app": "shop", "tier": "web", "example.com/x": ""})


def test_an_object_is_filed_under_the_requested_labels() -> None:
    assert label_index("app")(POD) == ("app=shop",)
    assert label_index("tier", "app", "zone")(POD) == ("app=shop", "tier=web")
    assert label_index("zone")(POD) == ()
    assert label_index("app")(pod("b")) == ()


def test_no_names_mean_all_labels() -> None:
    assert set(label_index()(POD)) == {"app=shop", "tier=web", "example.com/x="}


def test_an_index_covers_the_labels_of_its_names_or_all_labels() -> None:
    assert label_index("app").covers("app")
    assert not label_index("app").covers("tier")
    assert label_index().covers("anything")


def test_the_same_labels_are_the_same_function() -> None:
    """Two parts of a program can then request one informer with that index."""
    assert label_index("a", "b") is label_index("b", "a", "a")
    assert label_index("a") is not label_index("b")


def test_labels_that_cannot_be_read_are_an_error_of_the_object() -> None:
    with pytest.raises(ObjectDecodeError):
        label_index("app")(make_object(pod_body("a") | {"metadata": {"name": "a", "labels": 7}}))


def test_the_repr_is_the_call_that_made_it() -> None:
    assert repr(label_index("b", "a")) == "label_index('a', 'b')"
    assert repr(label_index()) == "label_index()"
