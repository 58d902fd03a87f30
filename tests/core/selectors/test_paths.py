"""Paths: one spelling, parsed to steps and walked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.selectors.paths import Step, StepMismatch, parse_path, render_path, walk
from aioinformer.errors import InvalidPath, UsageError
from tests.core import strategies

BODY: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "shop", "it's": 1}, "name": "web-0"},
    "spec": {"containers": [{"image": "a"}, {"image": "b"}], "nodeName": None},
}


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("spec", ("spec",)),
        ("spec.nodeName", ("spec", "nodeName")),
        ("spec.containers[1].image", ("spec", "containers", 1, "image")),
        ("spec.containers[0][10]", ("spec", "containers", 0, 10)),
        ("metadata.labels['a.b/c']", ("metadata", "labels", "a.b/c")),
        ('metadata.labels["a.b/c"].d', ("metadata", "labels", "a.b/c", "d")),
        ("['a']['']", ("a", "")),
        ("metadata.annotations.a/b", ("metadata", "annotations", "a/b")),
    ],
)
def test_a_path_is_keys_positions_and_quoted_keys(path: str, steps: tuple[Step, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize(
    ("path", "problem", "position"),
    [
        ("", "expected a key", 0),
        (".spec", "expected a key", 0),
        ("spec.", "expected a key", 5),
        ("spec..a", "expected a key", 5),
        ("spec nodeName", "expected '.' or '['", 4),
        ("spec.a[", "expected a position or a quoted key", 6),
        ("spec.a[*]", "expected a position or a quoted key", 6),
        ("spec.a[-1]", "expected a position or a quoted key", 6),
        ("spec.a['b]", "expected a position or a quoted key", 6),
        ("spec.a[0]b", "expected '.' or '['", 9),
        ("spec]", "expected '.' or '['", 4),
    ],
)
def test_an_invalid_path_is_an_error_that_marks_the_position(
    path: str, problem: str, position: int
) -> None:
    with pytest.raises(InvalidPath) as caught:
        parse_path(path)

    first, text, mark = str(caught.value).splitlines()
    assert first.startswith(f"invalid path: {problem}")
    assert first.split(": ")[1] in (
        "expected a key",
        "expected '.' or '['",
        "expected a position or a quoted key in brackets",
    )
    assert text == f"    {path}"
    assert mark.rstrip(" athend") == " " * (4 + position) + "^"
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, ValueError)


def test_an_error_at_the_end_of_a_path_is_marked() -> None:
    with pytest.raises(InvalidPath, match=r"\^ at the end"):
        parse_path("spec.")


keys = strategies.texts.filter(lambda text: not {"'", '"'} <= {*text})


@given(st.lists(keys | st.integers(0, 10**8), min_size=1, max_size=4).map(tuple))
def test_a_rendered_path_parses_to_the_same_steps(steps: tuple[Step, ...]) -> None:
    assert parse_path(render_path(steps)) == steps


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels['app.kubernetes.io/name']", "shop"),
        ('metadata.labels["it\'s"]', 1),
        ("spec.containers[1].image", "b"),
        ("spec.containers[2].image", None),
        ("spec.nodeName", None),
        ("spec.nodeName.first", None),
        ("status.phase", None),
        ("metadata.name[0]", None),
        ("metadata[0]", None),
        ("spec.containers.image", None),
    ],
)
def test_an_absent_value_or_one_of_another_type_is_none(path: str, value: object) -> None:
    assert walk(BODY, parse_path(path)) == value


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("metadata.name.first", "metadata.name is a string"),
        ("metadata.name[0]", "metadata.name is a string"),
        ("metadata[0]", "metadata is an object"),
        ("spec.containers.image", "spec.containers is a list"),
        ('metadata.labels["it\'s"].x', 'metadata.labels["it\'s"] is a number'),
        ("[0]", "it is an object"),
    ],
)
def test_a_strict_walk_names_the_value_of_another_type(path: str, message: str) -> None:
    with pytest.raises(StepMismatch) as caught:
        walk(BODY, parse_path(path), strict=True)

    assert str(caught.value) == message


@pytest.mark.parametrize("path", ["status.phase", "spec.nodeName.first", "spec.containers[2].a"])
def test_a_strict_walk_returns_none_for_an_absent_value(path: str) -> None:
    assert walk(BODY, parse_path(path), strict=True) is None
