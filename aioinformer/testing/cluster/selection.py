"""Which objects a list or watch is about: namespace, labels, fields, shard.

A server supports few field labels, and each type its own; the table is that of Kubernetes 1.36
(the ``AddFieldLabelConversionFunc`` of each group). Everything else is refused (recording 22).

``shardSelector``: one part of a resource's objects, by the hash of a metadata field (KEP-5866).

    shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')

A selector is one such range or several, joined by ``||``; recordings 54, 65 and 66. The texts of
refusals are those of apiserver's ``sharding/parser.go``, which parses CEL; what can't be read here
at all gets a plainer text than CEL's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from aioinformer._core.selectors.selectors import FieldSelector, LabelSelector
from aioinformer.errors import InvalidSelector, ServerError, Status, server_error
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, StoredObject

__all__ = ["ShardSelector"]


HASH_END = 1 << 64
_SHARD_FIELDS = ("object.metadata.uid", "object.metadata.namespace")
_CALL_PATTERN = re.compile(
    r"""\s*shardRange\(\s*([\w.]+)\s*,\s*['"]([^'"]*)['"]\s*,\s*['"]([^'"]*)['"]\s*\)\s*"""
)


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Ranges of hashes of one field."""

    field: str = ""
    ranges: tuple[tuple[int, int], ...] = ()
    """Each with its start, and the end that it doesn't hold. None at all: everything."""

    @classmethod
    def parse(cls, text: str) -> ShardSelector:
        """The selector that a request means; an empty text selects everything.

        Raises:
            ServerFailure: it doesn't parse: 500, not 400 (recording 66).
        """
        if not text.strip():
            return cls()
        calls = [_parse_call(part) for part in text.split("||")]
        fields = [name for name, _ in calls]
        for name in fields:
            if name != fields[0]:
                raise _selector_error(
                    f'all shard ranges must use the same field, got "{fields[0]}" and "{field}"'
                )
        return cls(fields[0], tuple(limits for _, limits in calls))

    def matches(self, stored: StoredObject) -> bool:
        """Whether an object is in one of the ranges."""
        if not self.ranges:
            return True
        value = stored.uid if self.field.endswith("uid") else stored.namespace
        hashed = _fnv1a(value)
        return any(start <= hashed < end for start, end in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __str__(self) -> str:
        return " || ".join(
            f"shardRange({self.field}, '0x{start:016x}', '0x{end:016x}')"
            for start, end in self.ranges
        )


def _parse_call(text: str) -> tuple[str, tuple[int, int]]:
    found = _CALL_PATTERN.fullmatch(text)
    if found is None:
        raise _selector_error(f"expected shardRange() call or || operator, got {text.strip()!r}")
    field, first, last = found.groups()
    if field not in _SHARD_FIELDS:
        raise _selector_error(
            f'unsupported field path "{field}"; supported: {", ".join(_SHARD_FIELDS)}'
        )
    start, end = _parse_bound(first, "hexStart"), _parse_bound(last, "hexEnd")
    if start >= end:
        raise _selector_error(f"shard range start {first} must be less than end {last}")
    return field, (start, end)


def _parse_bound(text: str, name: str) -> int:
    if not text.startswith("0x"):
        raise _selector_error(f"{name} must have '0x' prefix, got \"{text}\"")
    if not re.fullmatch("0x[0-9a-f]{16}", text) and text != f"0x{HASH_END:x}":
        raise _selector_error(f'{name} must be a 0x-prefixed 16-digit hex value, got "{text}"')
    return int(text, 16)


def _selector_error(why: str) -> ServerError:
    return server_error(Status(500, "", f"invalid shard selector: {why}"))


def _fnv1a(value: str) -> int:
    """FNV-1a with 64 bits (apimachinery's ``sharding.HashField``)."""
    hashed = 0xCBF29CE484222325
    for byte in value.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % HASH_END
    return hashed


_METADATA_LABELS = ("metadata.name", "metadata.namespace")

_FIELD_LABELS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
}
_LABEL_PATHS = {"source": "source.component"}
"""Where the value is, if not where the label says."""
_BOOLEAN_LABELS = ("spec.unschedulable", "spec.hostNetwork")
_NUMERIC_LABELS = ("status.replicas", "status.successful")


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace (``None``: all), a label selector, a field selector and a shard."""

    namespace: str | None = None
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    shard: ShardSelector = field(default_factory=ShardSelector)

    @classmethod
    def parse(
        cls, encoding: Encoding, namespace: str | None, labels: str, fields: str, shard: str = ""
    ) -> Selection:
        """The selection that a request means.

        Raises:
            NotFound: a namespace for a cluster-scoped resource.
            BadRequest: a selector doesn't parse, or names a field that can't be selected by.
            ServerFailure: the shard selector doesn't parse.
        """
        if namespace and not encoding.resource.namespaced:
            raise statuses.resource_not_found()
        try:
            selection = cls(
                namespace or None,
                LabelSelector.parse(labels),
                FieldSelector.parse(fields),
                ShardSelector.parse(shard),
            )
        except InvalidSelector as error:
            raise statuses.invalid_selector(error) from error
        for requirement in selection.fields.requirements:
            _check_field(encoding, requirement.path)
        return selection

    @property
    def prefix(self) -> str:
        """How the keys of the selected objects begin."""
        return f"{self.namespace}/" if self.namespace else ""

    @property
    def selects_all(self) -> bool:
        """Whether every object of the scope is selected."""
        return not (self.labels or self.fields or self.shard)

    def matches(self, stored: StoredObject | None) -> bool:
        """Whether an object is selected; nothing is not."""
        if stored is None or (self.namespace and stored.namespace != self.namespace):
            return False
        if self.labels and not self.labels.matches(stored.body["metadata"].get("labels") or {}):
            return False
        if self.fields and not self.fields.matches(_make_field_reader(stored.body)):
            return False
        return self.shard.matches(stored)


def _check_field(encoding: Encoding, path: str) -> None:
    special = _FIELD_LABELS.get(str(encoding.resource))
    if path in _METADATA_LABELS or path in (special or ()):
        return
    if special is not None or encoding.custom:
        raise statuses.bad_request(f"field label not supported: {path}")
    known = ", ".join(f'"{name}"' for name in _METADATA_LABELS)
    raise statuses.bad_request(f'"{path}" is not a known field selector: only {known}')


def _make_field_reader(body: dict[str, Any]) -> Callable[[str], str]:
    """The value of a path, as the server prints it for comparison."""

    def read(path: str) -> str:
        value: Any = body
        for name in _LABEL_PATHS.get(path, path).split("."):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if path in _BOOLEAN_LABELS:
            return "true" if value else "false"
        if value is None:
            return "0" if path in _NUMERIC_LABELS else ""
        return str(value)

    return read
