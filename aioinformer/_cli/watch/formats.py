"""The output formats of ``aioinformer watch -o``: pure, one class per format."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import yaml
from typing_extensions import TypeVar

from aioinformer import Event, KubeObject
from aioinformer._cli.terminal.style import event_type, printable
from aioinformer._cli.watch.columns import FieldColumns, ServerColumns
from aioinformer._cli.watch.kube_events import KubeEvent
from aioinformer._cli.watch.server_tables import Columns
from aioinformer._cli.watch.table import Table

FIELDS_PREFIX = "fields="

_UNLIMITED_WIDTH = 1_000_000
"""No string of a YAML document is wrapped."""


Text = TypeVar("Text", bound=str | bytes, covariant=True, default=str | bytes)


class OutputFormat(Protocol[Text]):
    whole_objects: bool
    """True if the format needs whole objects, False if the server's cells are enough."""

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        return ""

    def format_change(self, event: Event, now: dt.datetime) -> Text:
        return self.format_kube_event(event)

    def format_kube_event(self, event: Event) -> Text: ...


def create_format(
    output: str, *, columns: Callable[[], Columns], namespaces: bool, colour: bool
) -> OutputFormat:
    """Return the format for a value of ``--output``; raise ``InvalidPath`` for a wrong path."""
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
    def __init__(self, table: Table, *, whole_objects: bool) -> None:
        self.whole_objects = whole_objects
        self._table = table

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        return self._table.format_header(objects, now)

    def format_change(self, event: Event, now: dt.datetime) -> str:
        return self._table.format_change(event, now)

    def format_kube_event(self, event: Event) -> str:
        return self._table.format_kube_event(KubeEvent.from_object(event.obj))


class JsonFormat(OutputFormat[bytes]):
    """A line of JSON for each change, in the form of an API server's watch."""

    whole_objects = True

    def format_kube_event(self, event: Event) -> bytes:
        whole = {"type": event_type(event), "object": _typed_dict(event.obj)}
        text = msgspec.json.encode(whole).decode()
        if not text.isprintable():  # a text that controls the direction of a terminal's, and such
            text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
        return f"{text}\n".encode()


class YamlFormat(OutputFormat[str]):
    """A YAML document for each change, with its type in a comment."""

    whole_objects = True

    def format_kube_event(self, event: Event) -> str:
        body = _dump(event.obj, unicode=True)
        if not all(map(str.isprintable, body.split("\n"))):
            body = _dump(event.obj, unicode=False)
        return f"---\n# {event_type(event)}\n{body}"


class NameFormat(OutputFormat[str]):
    """``pod/web-0`` or ``deployment.apps/web``, as by ``kubectl get -o name``, also if deleted."""

    whole_objects = False

    def format_kube_event(self, event: Event) -> str:
        resource = event.obj.resource
        group = f".{resource.group}" if resource.group else ""
        return f"{resource.singular}{group}/{printable(event.obj.name)}\n"


def _dump(obj: KubeObject, *, unicode: bool) -> str:
    return yaml.safe_dump(
        _typed_dict(obj), sort_keys=False, allow_unicode=unicode, width=_UNLIMITED_WIDTH
    )


def _typed_dict(obj: KubeObject) -> dict[str, Any]:
    typed: dict[str, Any] = {"apiVersion": obj.api_version, "kind": obj.kind}
    return typed | obj.to_dict()  # the type first, like kubectl
