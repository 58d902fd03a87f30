"""The forms of objects in ``meta.k8s.io``: metadata alone, and tables for people.

``Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`` asks for metadata, and
its singular for the metadata of one object or of a watch's objects. ``as=Table`` asks for a table.
A server prints each built-in type in its own way. Here pods and Deployments have their columns, and
every other resource has those of a custom resource whose definition names none: name and age. Every
event of a watch is a table of one row, and only the first one has the column definitions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer.testing.wire.encoding import (
    Encoding,
    JsonObject,
    ListMeta,
    ObjectEncoder,
    StoredObject,
    WatchEventType,
    build_bookmark_metadata,
    encode_document,
    encode_json,
    encode_watch_event,
    order_metadata,
)
from aioinformer.testing.wire.json_paths import JsonPath

META_API_VERSION = "meta.k8s.io/v1"

ObjectForm: TypeAlias = Literal["whole", "metadata", "table"]

Include: TypeAlias = Literal["Metadata", "Object", "None"]
"""The part of an object beside its cells in a table: the query parameter ``includeObject``."""


def make_encoder(
    encoding: Encoding,
    form: ObjectForm,
    include: Include,
    clock: Callable[[], dt.datetime],
    columns: tuple[PrinterColumn, ...] = (),
) -> ObjectEncoder:
    if form == "table":
        return TableEncoder(encoding, clock, include, columns)
    return encoding if form == "whole" else MetadataEncoder()


# -- metadata ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MetadataEncoder:
    """Objects as ``PartialObjectMetadata``, the same for all resources."""

    def encode_event(self, event: WatchEventType, stored: StoredObject) -> bytes:
        return encode_watch_event(event, encode_json(partial_object_metadata(stored.metadata)))

    def encode_bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        metadata = build_bookmark_metadata(version, initial_events_end)
        return encode_watch_event("BOOKMARK", encode_json(partial_object_metadata(metadata)))

    def as_first_event(self, line: bytes) -> bytes:
        return line

    def encode_list(self, rows: Iterable[StoredObject], list_meta: ListMeta) -> bytes:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": META_API_VERSION}
        items = [partial_object_metadata(stored.metadata) for stored in rows]
        return encode_document(head | {"metadata": list_meta.to_dict(), "items": items})


def partial_object_metadata(metadata: JsonObject) -> JsonObject:
    head = {"kind": "PartialObjectMetadata", "apiVersion": META_API_VERSION}
    return head | {"metadata": order_metadata(metadata)}


# -- tables ------------------------------------------------------------------------------------

_NO_COLUMNS = b'"columnDefinitions":null'
"""The place of the column definitions in an event: ``as_first_event`` fills it in."""

_NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It is not guaranteed to be set in happens-before order across separate operations. Clients "
    "may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the "
    "system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel"
    "/sig-architecture/api-conventions.md#metadata"
)
_POD_COLUMNS = (
    ("Ready", "The aggregate readiness state of this pod for accepting traffic.", 0),
    ("Status", "The aggregate status of the containers in this pod.", 0),
    (
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last "
        "container in this pod has restarted.",
        0,
    ),
    ("Age", _AGE_DESCRIPTION, 0),
    (
        "IP",
        "podIP address allocated to the pod. Routable at least within the cluster. Empty if not "
        "yet allocated.",
        1,
    ),
    (
        "Node",
        "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate "
        "for scheduling by the scheduler defined in schedulerName. Once this field is set, the "
        "kubelet for this node becomes responsible for the lifecycle of this pod. This field "
        "should not be used to express a desire for the pod to be scheduled on a specific node. "
        "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename",
        1,
    ),
    (
        "Nominated Node",
        "nominatedNodeName is set only when this pod preempts other pods on the node, but it "
        "cannot be scheduled right away as preemption victims receive their graceful termination "
        "periods. This field does not guarantee that the pod will be scheduled on this node. "
        "Scheduler may decide to place the pod elsewhere if other nodes become available sooner. "
        "Scheduler may also decide to give the resources on this node to a higher priority pod "
        "that is created after preemption. As a result, this field may be different than "
        "PodSpec.nodeName when the pod is scheduled.",
        1,
    ),
    (
        "Readiness Gates",
        "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready "
        "when all its containers are ready AND all conditions specified in the readiness gates "
        'have status equal to "True" More info: '
        "https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates",
        1,
    ),
)


_DEPLOYMENT_COLUMNS = (
    ("Ready", "Number of the pod with ready state", 0),
    (
        "Up-to-date",
        "Total number of non-terminated pods targeted by this deployment that have the desired "
        "template spec.",
        0,
    ),
    (
        "Available",
        "Total number of available non-terminating pods (ready for at least minReadySeconds) "
        "targeted by this deployment.",
        0,
    ),
    ("Age", _AGE_DESCRIPTION, 0),
    ("Containers", "Names of each container in the template.", 1),
    ("Images", "Images referenced by each container in the template.", 1),
    (
        "Selector",
        "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the "
        "ones affected by this deployment.",
        1,
    ),
)


@dataclass(frozen=True, slots=True)
class TableEncoder:
    encoding: Encoding
    clock: Callable[[], dt.datetime]
    """The time to which ages are counted."""
    include: Include = "Metadata"
    columns: tuple[PrinterColumn, ...] = ()
    """The columns of a custom resource; without any, the age is the only one."""

    def encode_list(self, rows: Iterable[StoredObject], list_meta: ListMeta) -> bytes:
        printed = [self._build_row(stored) for stored in rows]
        return encode_document(_build_table(list_meta.to_dict(), self._columns, printed))

    def encode_event(self, event: WatchEventType, stored: StoredObject) -> bytes:
        version = stored.metadata["resourceVersion"]
        return _encode_table_event(event, version, self._build_row(stored))

    def encode_bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """Return a row with empty cells, whose object has the annotation."""
        metadata = build_bookmark_metadata(version, initial_events_end)
        shown: Any = None
        if self.include == "Object":
            whole = self.encoding.encode_bookmark(version, initial_events_end=initial_events_end)
            shown = msgspec.json.decode(whole)["object"]
        elif self.include == "Metadata" or initial_events_end:  # the annotation is always sent
            shown = partial_object_metadata(metadata)
        row = {"cells": self._row_cells({"metadata": metadata}), "object": shown}
        return _encode_table_event("BOOKMARK", str(version), row)

    def as_first_event(self, line: bytes) -> bytes:
        """Return the event with the column definitions, if the event is a table."""
        return line.replace(_NO_COLUMNS, b'"columnDefinitions":%s' % encode_json(self._columns), 1)

    @property
    def _columns(self) -> list[JsonObject]:
        columns = [_build_column("Name", _NAME_DESCRIPTION, 0, form="name")]
        if printer := self._printer:
            return columns + [_build_column(*column) for column in printer.columns]
        if self.columns:
            return columns + [each.definition for each in self.columns]
        return [*columns, _build_column("Age", _AGE_DESCRIPTION, 0, kind="date")]

    def _build_row(self, stored: StoredObject) -> JsonObject:
        shown: Any = None
        if self.include == "Object":
            shown = msgspec.Raw(self.encoding.add_type_meta(stored.raw))
        elif self.include == "Metadata":
            shown = partial_object_metadata(stored.metadata)
        return {"cells": self._row_cells(stored.body), "object": shown}

    @property
    def _printer(self) -> _Printer | None:
        return _PRINTERS.get(str(self.encoding.resource))

    def _row_cells(self, body: JsonObject) -> list[Any]:
        name = body["metadata"].get("name", "")
        created = body["metadata"].get("creationTimestamp")
        age = _format_age_of(created, self.clock()) if created else None
        if self.columns:
            return [name, *(each.cell(body, self.clock()) for each in self.columns)]
        printer = self._printer
        if printer is None:
            return [name, age]
        first, second, third, *wide = printer.cells(body)
        return [name, first, second, third, age or "<unknown>", *wide]


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of a custom resource's table (``additionalPrinterColumns``)."""

    name: str
    kind: str
    """``integer``, ``number``, ``string``, ``boolean`` or ``date``, which is shown as an age."""
    path: JsonPath
    format: str = ""
    description: str = ""
    priority: int = 0

    @property
    def definition(self) -> JsonObject:
        """The column in ``columnDefinitions``."""
        text = self.description
        text = text or f"Custom resource definition column (in JSONPath format): {self.path.text}"
        return _build_column(self.name, text, self.priority, kind=self.kind, form=self.format)

    def cell(self, body: JsonObject, now: dt.datetime) -> Any:
        """Return the cell of an object; ``None`` if the object has no such value."""
        found = self.path.find(body)
        if not found:
            return None
        value = found[0]
        match self.kind:
            case "date":
                return _format_age_of(value, now) if isinstance(value, str) else "<invalid>"
            case "string":
                texts = [each if isinstance(each, str) else _dump(each) for each in found]
                return ",".join(texts)
            case "integer":
                return value if isinstance(value, int) else None
            case _:
                return value


def _dump(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _format_age_of(created: str, now: dt.datetime) -> str:
    try:
        return format_age(now - dt.datetime.fromisoformat(created))
    except (ValueError, TypeError):
        return "<unknown>"


def _encode_table_event(event: WatchEventType, version: str, row: JsonObject) -> bytes:
    table = _build_table({"resourceVersion": version}, None, [row])
    return encode_watch_event(event, encode_json(table))


def _build_table(metadata: JsonObject, columns: object, rows: object) -> JsonObject:
    return {
        "kind": "Table",
        "apiVersion": META_API_VERSION,
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def _build_column(
    name: str, description: str, priority: int, *, kind: str = "string", form: str = ""
) -> JsonObject:
    column: JsonObject = {"name": name, "type": kind, "format": form}
    return column | {"description": description, "priority": priority}


_NO_VALUE = "<none>"


def _pod_cells(body: JsonObject) -> list[str]:
    """Return the cells besides name and age (a part of kubernetes' ``printPod``)."""
    spec, status = _as_mapping(body.get("spec")), _as_mapping(body.get("status"))
    containers = [_as_mapping(each) for each in _as_list(status.get("containerStatuses"))]
    ready = sum(bool(each.get("ready")) for each in containers)
    restarts = sum(int(each.get("restartCount") or 0) for each in containers)
    reason = status.get("reason") or status.get("phase") or ""
    for each in reversed(containers):  # the reason of the first waiting container is printed
        waiting = _as_mapping(_as_mapping(each.get("state")).get("waiting"))
        reason = waiting.get("reason") or reason
    if "deletionTimestamp" in body["metadata"]:
        reason = "Terminating"
    return [
        f"{ready}/{len(_as_list(spec.get('containers')))}",
        str(reason),
        str(restarts),
        str(status.get("podIP") or _NO_VALUE),
        str(spec.get("nodeName") or _NO_VALUE),
        str(status.get("nominatedNodeName") or _NO_VALUE),
        _readiness_gates(spec, status),
    ]


def _readiness_gates(spec: JsonObject, status: JsonObject) -> str:
    wanted = {
        _as_mapping(gate).get("conditionType") for gate in _as_list(spec.get("readinessGates"))
    }
    if not wanted:
        return _NO_VALUE
    conditions = [_as_mapping(each) for each in _as_list(status.get("conditions"))]
    met = {each.get("type") for each in conditions if each.get("status") == "True"}
    return f"{len(wanted & met)}/{len(wanted)}"


def _deployment_cells(body: JsonObject) -> list[Any]:
    """Return the cells besides name and age (kubernetes' ``printDeployment``)."""
    spec, status = _as_mapping(body.get("spec")), _as_mapping(body.get("status"))
    template = _as_mapping(_as_mapping(spec.get("template")).get("spec"))
    containers = [_as_mapping(each) for each in _as_list(template.get("containers"))]
    return [
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        ",".join(str(each.get("name", "")) for each in containers),
        ",".join(str(each.get("image", "")) for each in containers),
        _selector_text(_as_mapping(spec.get("selector"))),
    ]


def _selector_text(selector: JsonObject) -> str:
    """Return a selector as text (apimachinery's ``FormatLabelSelector``)."""
    parts = [
        (name, f"{name}={text}") for name, text in _as_mapping(selector.get("matchLabels")).items()
    ]
    for each in map(_as_mapping, _as_list(selector.get("matchExpressions"))):
        name = str(each.get("key", ""))
        values = f" ({','.join(sorted(map(str, _as_list(each.get('values')))))})"
        match each.get("operator"):
            case "In":
                parts.append((name, f"{name} in{values}"))
            case "NotIn":
                parts.append((name, f"{name} notin{values}"))
            case "Exists":
                parts.append((name, name))
            case _:
                parts.append((name, f"!{name}"))
    return ",".join(text for _, text in sorted(parts)) or _NO_VALUE


def _as_mapping(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _as_list(value: object) -> list[Any]:
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class _Printer:
    """The columns of a built-in resource after the name, and their cells without the age."""

    columns: tuple[tuple[str, str, int], ...]
    """The name, description and priority of each; the age is the fourth."""
    cells: Callable[[JsonObject], list[Any]]


_PRINTERS = {
    "pods": _Printer(_POD_COLUMNS, _pod_cells),
    "deployments.apps": _Printer(_DEPLOYMENT_COLUMNS, _deployment_cells),
}

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def format_age(duration: dt.timedelta) -> str:
    """Return a duration in the server's notation: at most two figures (``HumanDuration``)."""
    seconds = int(duration.total_seconds())
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    # Each row: the end of its range, the unit, and the smaller unit of the second figure, if any.
    for below, (unit, letter), (part, smaller) in (
        (2 * _MINUTE, (1, "s"), (0, "")),
        (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
        (3 * _HOUR, (_MINUTE, "m"), (0, "")),
        (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
        (2 * _DAY, (_HOUR, "h"), (0, "")),
        (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
        (2 * _YEAR, (_DAY, "d"), (0, "")),
        (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
    ):
        if seconds < below:
            rest = seconds % unit // part if part else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{smaller}" if rest else "")
    return f"{seconds // _YEAR}y"
