"""The output formats of ``aioinformer watch -o``: pure, one class per format.

JSON prints one line for each change, YAML one document after ``---``. The table prints rows, and
``name`` prints names for ``xargs``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import yaml

from aioinformer import Event, KubeObject
from aioinformer._cli.terminal.style import event_type, printable
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
"""The prefix of a list of fields."""

_UNLIMITED_WIDTH = 1_000_000
"""The width of a YAML document: no string is wrapped."""


class OutputFormat(Protocol):
    """A format in which changes are printed."""

    @property
    def whole_objects(self) -> bool:
        """True if the format needs whole objects, False if the server's cells are enough."""
        ...

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Return the text before the first change."""
        ...

    def format_change(self, event: Event, now: dt.datetime) -> str | bytes:
        """Return the text of a change."""
        ...

    def format_kube_event(self, event: Event) -> str | bytes:
        """Return the text of a Kubernetes Event that is shown between changes."""
        ...


def create_format(
    output: str, *, columns: Callable[[], Columns], namespaces: bool, colour: bool
) -> OutputFormat:
    """Return the format for a value of ``--output``.

    Args:
        output: ``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``fields=PATH,...``.
        columns: returns the columns of the server's tables.
        namespaces: True to show the namespace of each object.
        colour: True to use colours.

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
    """Rows of a table."""

    def __init__(self, table: Table, *, whole_objects: bool) -> None:
        """Print the rows of ``table``, which needs whole objects or only the server's cells."""
        self.whole_objects = whole_objects
        self._table = table

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Return the row of headings."""
        return self._table.format_header(objects, now)

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """Return the row of a change."""
        return self._table.format_change(event, now)

    def format_kube_event(self, event: Event) -> str:
        """Return the row of a Kubernetes Event."""
        return self._table.format_kube_event(KubeEvent.from_object(event.obj))


class JsonFormat:
    """A line of JSON for each change, in the form of an API server's watch."""

    whole_objects = True

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Return an empty text."""
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> bytes:
        """Return the line of a change."""
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> bytes:
        """Return the line of a Kubernetes Event, which has ``kind: Event``."""
        whole = {"type": event_type(event), "object": _typed_dict(event.obj)}
        return msgspec.json.encode(whole) + b"\n"


class YamlFormat:
    """A YAML document for each change, with its type in a comment."""

    whole_objects = True

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Return an empty text."""
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """Return the document of a change."""
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> str:
        """Return the document of a Kubernetes Event, which has ``kind: Event``."""
        body = yaml.safe_dump(
            _typed_dict(event.obj), sort_keys=False, allow_unicode=True, width=_UNLIMITED_WIDTH
        )
        return f"---\n# {event_type(event)}\n{body}"


class NameFormat:
    """The name of a changed object, in the form of ``kubectl get -o name``."""

    whole_objects = False

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Return an empty text."""
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """Return ``pod/web-0`` or ``deployment.apps/web``, also for a deleted object."""
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> str:
        """Return a name such as ``event/web-0.18a``."""
        resource = event.obj.resource
        group = f".{resource.group}" if resource.group else ""
        return f"{resource.singular}{group}/{printable(event.obj.name)}\n"


def _typed_dict(obj: KubeObject) -> dict[str, Any]:
    typed: dict[str, Any] = {"apiVersion": obj.api_version, "kind": obj.kind}
    return typed | obj.to_dict()  # the type first, like kubectl
