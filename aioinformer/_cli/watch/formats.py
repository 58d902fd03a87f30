"""What ``aioinformer watch -o`` chooses: in which form changes are printed.

Pure, one class a form. JSON and YAML are a document a change, in a line or after ``---``; the other
forms are lines for people, and names for ``xargs``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import yaml

from aioinformer import Event, KubeObject
from aioinformer._cli.demo.counters import event_type
from aioinformer._cli.terminal.style import printable
from aioinformer._cli.watch.columns import FieldColumns, ServerColumns
from aioinformer._cli.watch.kube_events import KubeEvent
from aioinformer._cli.watch.server_tables import Columns
from aioinformer._cli.watch.table import Table

__all__ = [
    "FIELDS_PREFIX",
    "JsonFormat",
    "NameFormat",
    "OutputFormat",
    "TableFormat",
    "YamlFormat",
    "create_format",
]

FIELDS_PREFIX = "fields="
"""What a list of fields is introduced by."""

_UNLIMITED_WIDTH = 1_000_000
"""The width of a YAML document: no string in it is folded."""


class OutputFormat(Protocol):
    """How changes are printed."""

    @property
    def whole_objects(self) -> bool:
        """Whether it needs whole objects, or what the server prints of them will do."""
        ...

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """What comes before the first change."""
        ...

    def format_change(self, event: Event, now: dt.datetime) -> str | bytes:
        """A change."""
        ...

    def format_kube_event(self, event: Event) -> str | bytes:
        """A Kubernetes Event between changes."""
        ...


def create_format(
    output: str, *, columns: Callable[[], Columns], namespaces: bool, colour: bool
) -> OutputFormat:
    """The form that is asked for.

    Args:
        output: ``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``fields=PATH,...``.
        columns: which columns the server's tables have.
        namespaces: whether objects of several namespaces come.
        colour: whether to use escapes.

    Raises:
        InvalidPath: a path doesn't parse.
    """
    plain: Mapping[str, Callable[[], OutputFormat]] = {
        "json": JsonFormat,
        "yaml": YamlFormat,
        "name": NameFormat,
    }
    if output in plain:
        return plain[output]()
    if output.startswith(FIELDS_PREFIX):
        chosen = FieldColumns.parse(output.removeprefix(FIELDS_PREFIX))
        return TableFormat(Table(chosen, namespaces=False, colour=colour), whole_objects=True)
    printed = ServerColumns(columns, wide=output == "wide")
    return TableFormat(Table(printed, namespaces=namespaces, colour=colour), whole_objects=False)


class TableFormat:
    """Rows under each other."""

    def __init__(self, table: Table, *, whole_objects: bool) -> None:
        """Rows of ``table``, which needs whole ``whole_objects`` or not."""
        self.whole_objects = whole_objects
        self._table = table

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """The header."""
        return self._table.format_header(objects, now)

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """A row."""
        return self._table.format_change(event, now)

    def format_kube_event(self, event: Event) -> str:
        """A row of its own kind."""
        return self._table.format_kube_event(KubeEvent.from_object(event.obj))


class JsonFormat:
    """A line of JSON for each change, as the watch of an API server has it."""

    whole_objects = True

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Nothing."""
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> bytes:
        """The line."""
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> bytes:
        """The line; ``kind`` tells whether it is an Event."""
        whole = {"type": event_type(event), "object": _typed_dict(event.obj)}
        return msgspec.json.encode(whole) + b"\n"


class YamlFormat:
    """A YAML document for each change, with its type in a comment."""

    whole_objects = True

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Nothing."""
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """The document."""
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> str:
        """The document; ``kind`` tells whether it is an Event."""
        body = yaml.safe_dump(
            _typed_dict(event.obj), sort_keys=False, allow_unicode=True, width=_UNLIMITED_WIDTH
        )
        return f"---\n# {event_type(event)}\n{body}"


class NameFormat:
    """The name of what has changed, as ``kubectl get -o name`` writes it."""

    whole_objects = False

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Nothing."""
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """``pod/web-0``, ``deployment.apps/web``; one that is gone is named as well."""
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> str:
        """``event/web-0.18a``."""
        resource = event.obj.resource
        group = f".{resource.group}" if resource.group else ""
        return f"{resource.singular}{group}/{printable(event.obj.name)}\n"


def _typed_dict(obj: KubeObject) -> dict[str, Any]:
    typed: dict[str, Any] = {"apiVersion": obj.api_version, "kind": obj.kind}
    return typed | obj.to_dict()  # the type first, as kubectl writes it
