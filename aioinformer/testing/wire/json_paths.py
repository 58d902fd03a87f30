"""JSON paths of printer columns, such as ``.status.conditions[?(@.type=="Ready")].status``.

The paths are those of kubectl (k8s.io/client-go/util/jsonpath), as far as definitions use them:
fields, indexes, ``*``, and a filter that compares one field with a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]])+)
    |\[\?\(\s*@\.(?P<key>[\w.-]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]
    |\[(?P<index>-?\d+)\]
    |\[["'](?P<quoted>[^"']+)["']\]
    |\.?\[?(?P<all>\*)\]?""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class JsonPath:
    text: str

    def __post_init__(self) -> None:
        place = 0
        while place < len(self.text):
            step = _STEP.match(self.text, place)
            if step is None:
                raise ValueError(f"{self.text!r} is not a JSON path that a column can have")
            place = step.end()

    def find(self, body: Mapping[str, Any]) -> list[Any]:
        """Return the values at the path; none if the body doesn't have the path."""
        values: list[Any] = [body]
        for step in _STEP.finditer(self.text):
            values = [found for value in values for found in _take(value, step)]
        return values


def _take(value: Any, step: re.Match[str]) -> list[Any]:
    name = (step["name"] or "").replace("\\.", ".") or step["quoted"]
    if isinstance(value, Mapping):
        body = cast("Mapping[str, Any]", value)
        if step["all"] or name == "*":
            return list(body.values())
        return [body[name]] if name and name in body else []
    if not isinstance(value, list):
        return []
    items = list(cast("Sequence[Any]", value))
    if step["index"]:
        index = int(step["index"])
        return [items[index]] if -len(items) <= index < len(items) else []
    if step["key"]:
        return [each for each in items if _has(each, step["key"], step["value"])]
    return items if step["all"] else []


def _has(item: Any, key: str, wanted: str) -> bool:
    return isinstance(item, Mapping) and cast("Mapping[str, Any]", item).get(key) == wanted
