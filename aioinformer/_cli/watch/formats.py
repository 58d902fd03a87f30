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
from aioinformer._cli.demo.counters import type_of
from aioinformer._cli.terminal.style import printable
from aioinformer._cli.watch.columns import Chosen, Printed
from aioinformer._cli.watch.kube_events import Note
from aioinformer._cli.watch.server_tables import Columns
from aioinformer._cli.watch.table import Table

__all__ = ["FIELDS", "Form", "JsonForm", "NameForm", "TableForm", "YamlForm", "form_of"]

FIELDS = "fields="
"""What a list of fields is introduced by."""

_UNBROKEN = 1_000_000
"""The width of a YAML document: no string in it is folded."""


class Form(Protocol):
    """How changes are printed."""

    @property
    def objects(self) -> bool:
        """Whether it needs whole objects, or what the server prints of them will do."""
        ...

    def opening(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """What comes before the first change."""
        ...

    def change(self, event: Event, now: dt.datetime) -> str | bytes:
        """A change."""
        ...

    def note(self, event: Event) -> str | bytes:
        """A Kubernetes Event between changes."""
        ...


def form_of(output: str, *, columns: Callable[[], Columns], namespaces: bool, colour: bool) -> Form:
    """The form that is asked for.

    Args:
        output: ``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``fields=PATH,...``.
        columns: which columns the server's tables have.
        namespaces: whether objects of several namespaces come.
        colour: whether to use escapes.

    Raises:
        InvalidPath: a path doesn't parse.
    """
    plain: Mapping[str, Callable[[], Form]] = {
        "json": JsonForm,
        "yaml": YamlForm,
        "name": NameForm,
    }
    if output in plain:
        return plain[output]()
    if output.startswith(FIELDS):
        chosen = Chosen.parse(output.removeprefix(FIELDS))
        return TableForm(Table(chosen, namespaces=False, colour=colour), objects=True)
    printed = Printed(columns, wide=output == "wide")
    return TableForm(Table(printed, namespaces=namespaces, colour=colour), objects=False)


class TableForm:
    """Rows under each other."""

    def __init__(self, table: Table, *, objects: bool) -> None:
        """Rows of ``table``, which needs whole ``objects`` or not."""
        self.objects = objects
        self._table = table

    def opening(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """The header."""
        return self._table.opening(objects, now)

    def change(self, event: Event, now: dt.datetime) -> str:
        """A row."""
        return self._table.change(event, now)

    def note(self, event: Event) -> str:
        """A row of its own kind."""
        return self._table.note(Note.read(event.obj))


class JsonForm:
    """A line of JSON for each change, as the watch of an API server has it."""

    objects = True

    def opening(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Nothing."""
        return ""

    def change(self, event: Event, now: dt.datetime) -> bytes:
        """The line."""
        return self.note(event)

    def note(self, event: Event) -> bytes:
        """The line; ``kind`` tells whether it is an Event."""
        whole = {"type": type_of(event), "object": _document(event.obj)}
        return msgspec.json.encode(whole) + b"\n"


class YamlForm:
    """A YAML document for each change, with its type in a comment."""

    objects = True

    def opening(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Nothing."""
        return ""

    def change(self, event: Event, now: dt.datetime) -> str:
        """The document."""
        return self.note(event)

    def note(self, event: Event) -> str:
        """The document; ``kind`` tells whether it is an Event."""
        body = yaml.safe_dump(
            _document(event.obj), sort_keys=False, allow_unicode=True, width=_UNBROKEN
        )
        return f"---\n# {type_of(event)}\n{body}"


class NameForm:
    """The name of what has changed, as ``kubectl get -o name`` writes it."""

    objects = False

    def opening(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Nothing."""
        return ""

    def change(self, event: Event, now: dt.datetime) -> str:
        """``pod/web-0``, ``deployment.apps/web``; one that is gone is named as well."""
        return self.note(event)

    def note(self, event: Event) -> str:
        """``event/web-0.18a``."""
        resource = event.obj.resource
        group = f".{resource.group}" if resource.group else ""
        return f"{resource.singular}{group}/{printable(event.obj.name)}\n"


def _document(obj: KubeObject) -> dict[str, Any]:
    typed: dict[str, Any] = {"apiVersion": obj.api_version, "kind": obj.kind}
    return typed | obj.to_dict()  # the type first, as kubectl writes it
