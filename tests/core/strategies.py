"""The hypothesis strategies of the core's tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase

# -- JSON ----------------------------------------------------------------------------------------

TRICKY_STRINGS = (
    '"managedFields":[]',
    '{"metadata":{"managedFields":[]}}',
    '},{"metadata":{"name":"x"}}',
    '"items":[',
    '{"items":[{',
    "]}",
    "}",
    "{",
    '"',
    "\\",
    '\\"',
    "\\\\",
    "\u0085",
    "\u2028",
    "\r\n",
    "\x00",
    "é😀",
)
"""Strings that look like JSON syntax or like the end of a line."""

texts = st.one_of(
    st.sampled_from(TRICKY_STRINGS),
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.lists(st.sampled_from(TRICKY_STRINGS), max_size=3).map("".join),
)
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
versions = st.integers(1, 10**9).map(str)

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
_plain_keys = st.sampled_from(
    ["items", "metadata", "managedFields", "name", "data", "a b", "é", "{", "]"]
) | st.text("abcxyz{}[],:", max_size=5)
values: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_plain_keys, inner, max_size=4),
    max_leaves=10,
)
"""Any JSON value."""


def reordered(items: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of the same object with its keys in any order."""
    return st.permutations(list(items.items())).map(dict)


@dataclass(frozen=True)
class JsonStyle:
    """A style of JSON text."""

    item_separator: str = ","
    key_separator: str = ":"
    indent: int | None = None
    ascii_only: bool = False

    def __call__(self, value: object) -> bytes:
        """Return ``value`` as JSON in this style."""
        return json.dumps(
            value,
            indent=self.indent,
            separators=(self.item_separator, self.key_separator),
            ensure_ascii=self.ascii_only,
        ).encode()


json_styles = st.builds(
    JsonStyle,
    item_separator=st.sampled_from([",", ", ", " ,", "\n,\t"]),
    key_separator=st.sampled_from([":", ": ", " : "]),
    indent=st.sampled_from([None, None, 0, 2]),
    ascii_only=st.booleans(),
)
"""Compact, spaced and indented JSON."""


# -- objects -------------------------------------------------------------------------------------

_string_maps = st.dictionaries(
    st.sampled_from(["managedFields", "metadata", "app", "example.com/last-applied"]),
    texts,
    max_size=3,
)
managed_fields: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.just([]),
    st.lists(
        st.fixed_dictionaries(
            {"manager": texts, "fieldsV1": st.just({"f:metadata": {"f:managedFields": {}}})}
        ),
        max_size=2,
    ),
)
"""The possible values of ``metadata.managedFields``."""


@st.composite
def metadata(draw: st.DrawFn, *, managed: Any = ...) -> dict[str, Any]:
    """Draw the metadata of an object. Maps have strings as values, since servers ensure that.

    Args:
        draw: hypothesis's function.
        managed: the value of managedFields; by default the metadata has none.
    """
    found: dict[str, Any] = {
        "name": draw(names),
        "uid": draw(names),
        "resourceVersion": draw(versions),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "namespace": names,
        "labels": _string_maps,
        "annotations": _string_maps,
        "ownerReferences": st.lists(st.fixed_dictionaries({"name": names}), max_size=2),
        "creationTimestamp": st.sampled_from(["2026-07-01T10:00:00Z", None]),
    }
    found |= draw(st.fixed_dictionaries({}, optional=optional))
    if managed is not ...:
        found["managedFields"] = managed
    return draw(reordered(found))


@st.composite
def objects(draw: st.DrawFn, *, managed: Any = ...) -> dict[str, Any]:
    """Draw an object with any JSON beside its metadata."""
    body: dict[str, Any] = {"metadata": draw(metadata(managed=managed))}
    optional: dict[str, st.SearchStrategy[Any]] = {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "spec": values,
        "data": values,
        "items": values,
        "status": values,
    }
    body |= draw(st.fixed_dictionaries({}, optional=optional))
    return draw(reordered(body))


@st.composite
def objects_full_of_managed_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an object with managedFields, and with the same key and value at other places."""
    managed = draw(managed_fields)
    look_alikes: dict[str, Any] = {
        "managedFields": managed,
        "data": {"managedFields": managed, "note": json.dumps({"managedFields": managed})},
        "spec": {"template": {"metadata": {"managedFields": managed, "name": "x"}}},
        "status": [{"metadata": {"managedFields": managed}}, {"managedFields": managed}],
        "note": '"metadata":{"managedFields":' + json.dumps(managed),
    }
    body = draw(objects(managed=managed))
    chosen = draw(st.sets(st.sampled_from(sorted(look_alikes))))
    body |= {name: look_alikes[name] for name in chosen}
    if draw(st.booleans()):
        text = json.dumps(body, separators=(",", ":"))
        body["metadata"].setdefault("annotations", {})["last-applied"] = text
    return draw(reordered(body))


# -- lists ---------------------------------------------------------------------------------------


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a list, with its keys in the order of built-in or custom resources, or in any other."""
    items = draw(st.lists(objects(), max_size=6))
    frame: dict[str, Any] = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": draw(versions)},
        "items": items,
    }
    order = draw(st.sampled_from(["built-in", "sorted", "any"]))
    if order == "sorted":
        return dict(sorted(frame.items()))
    return draw(reordered(frame)) if order == "any" else frame


# -- bytes as the network cuts them --------------------------------------------------------------


@st.composite
def chunks(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Draw pieces of ``data``: cut at a few places anywhere, or after each byte."""
    if len(data) <= 2000 and draw(st.integers(0, 9)) == 0:
        return [data[at : at + 1] for at in range(len(data))]
    places = draw(st.lists(st.integers(0, len(data)), max_size=12))
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


# -- outcomes ------------------------------------------------------------------------------------

seconds = st.floats(0, 5, allow_nan=False)
unit_floats = st.floats(0, 1, exclude_max=True, allow_nan=False)


def outcomes(phase: Phase) -> st.SearchStrategy[Outcome]:
    """Return a strategy of the outcomes of a request in this phase."""
    return st.sampled_from(list(TRANSITIONS[phase]))


# -- changes of a few objects --------------------------------------------------------------------

few_names = st.sampled_from(["a", "b", "c", "d"])
few_uids = st.sampled_from(["1", "2"])
kinds = st.sampled_from(["Added", "Updated", "Deleted"])


# -- paths into an object ------------------------------------------------------------------------


@st.composite
def paths_into(draw: st.DrawFn, body: Any) -> tuple[str | int, ...]:
    """Draw a path into ``body``: mostly to an existing value, and perhaps further to none."""
    steps: list[str | int] = [draw(st.sampled_from(sorted(body)))]
    value: Any = body[steps[0]]
    while places := _child_keys(value):
        if not draw(st.integers(0, 4)):
            break
        steps.append(draw(st.sampled_from(places)))
        value = value[steps[-1]]
    missing: st.SearchStrategy[str | int] = st.one_of(
        st.sampled_from(["name", "items", "a b", "é", "'"]), st.sampled_from([0, 3]), texts
    )
    steps += draw(st.lists(missing, max_size=2))
    return tuple(step for step in steps if not (isinstance(step, str) and {"'", '"'} <= {*step}))


def _child_keys(value: Any) -> list[str | int]:
    """Return the keys of an object, or the positions of a list."""
    if isinstance(value, list):
        return list(range(len(value)))  # pyright: ignore[reportUnknownArgumentType] - JSON
    return list(value) if isinstance(value, dict) else []  # pyright: ignore[reportUnknownArgumentType] - JSON
