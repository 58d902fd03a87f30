"""Selectors of a list or watch: namespace, labels, fields and shard.

A shard selector selects a part of a resource's objects by the hash of a metadata field (KEP-5866):

    shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')

The selector is one such range, or several ranges joined by ``||``. Error texts are those of
apiserver's ``sharding/parser.go``, which parses CEL. The text for a selector that is not a call of
``shardRange`` at all is plainer than CEL's.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
from aioinformer.errors import InvalidSelector, ServerError, Status, server_error
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, StoredObject
from aioinformer.testing.wire.field_labels import check_field_label, make_field_reader

HASH_END = 1 << 64
"""The first number after all hashes."""
_SHARD_FIELDS = ("object.metadata.uid", "object.metadata.namespace")
_CALL_PATTERN = re.compile(
    r"""\s*shardRange\(\s*([\w.]+)\s*,\s*['"]([^'"]*)['"]\s*,\s*['"]([^'"]*)['"]\s*\)\s*"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorQuery:
    namespace: str | None = None
    """``None`` for all namespaces."""
    labels: str = ""
    fields: str = ""
    shard: str = ""


# -- shards ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Ranges of hashes of one field. No range at all selects everything."""

    field: str = ""
    ranges: tuple[tuple[int, int], ...] = ()
    """The first hash of each range, and the first hash after it."""

    @classmethod
    def parse(cls, text: str) -> ShardSelector:
        """Parse a selector; an empty text selects everything. Raise ``ServerFailure`` (500)."""
        if not text.strip():
            return cls()
        calls = [_parse_call(part) for part in text.split("||")]
        first = calls[0][0]
        for other, _ in calls:
            if other != first:
                raise _shard_error(
                    f'all shard ranges must use the same field, got "{first}" and "{other}"'
                )
        return cls(first, tuple(limits for _, limits in calls))

    def matches(self, stored: StoredObject) -> bool:
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
        raise _shard_error(f"expected shardRange() call or || operator, got {text.strip()!r}")
    path, first, last = found.groups()
    if path not in _SHARD_FIELDS:
        raise _shard_error(
            f'unsupported field path "{path}"; supported: {", ".join(_SHARD_FIELDS)}'
        )
    start, end = _parse_bound(first, "hexStart"), _parse_bound(last, "hexEnd")
    if start >= end:
        raise _shard_error(f"shard range start {first} must be less than end {last}")
    return path, (start, end)


def _parse_bound(text: str, name: str) -> int:
    if not text.startswith("0x"):
        raise _shard_error(f"{name} must have '0x' prefix, got \"{text}\"")
    # The end of the last range has 17 digits; every other bound has 16.
    if not re.fullmatch("0x[0-9a-f]{16}", text) and text != f"0x{HASH_END:x}":
        raise _shard_error(f'{name} must be a 0x-prefixed 16-digit hex value, got "{text}"')
    return int(text, 16)


def _shard_error(reason: str) -> ServerError:
    return server_error(Status(500, "", f"invalid shard selector: {reason}"))


def _fnv1a(value: str) -> int:
    """Return the 64-bit FNV-1a hash of a text (apimachinery's ``sharding.HashField``)."""
    hashed = 0xCBF29CE484222325
    for byte in value.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % HASH_END
    return hashed


# -- all selectors -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """The parsed selectors of a request; ``namespace`` is ``None`` for all."""

    namespace: str | None = None
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    shard: ShardSelector = field(default_factory=ShardSelector)
    _unrestricted: bool = field(init=False, repr=False, compare=False)
    """True if every object is selected. A write reads it twice for each watch."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_unrestricted", self.namespace is None and self.selects_all)

    @classmethod
    def parse(
        cls,
        encoding: Encoding,
        query: SelectorQuery,
        *,
        sharding: bool,
        selectable_fields: Collection[str] = (),
    ) -> Selection:
        """Parse the selectors; regard the shard selector if ``sharding``.

        Raises:
            NotFound: the request names a namespace, but the resource is cluster-scoped.
            BadRequest: a selector is malformed, or names a field label that isn't supported.
            ServerFailure: the shard selector is malformed.
        """
        if query.namespace and not encoding.resource.namespaced:
            raise statuses.resource_not_found()
        try:
            selection = cls(
                query.namespace or None,
                LabelSelector.parse(query.labels),
                FieldSelector.parse(query.fields),
                ShardSelector.parse(query.shard if sharding else ""),
            )
        except InvalidSelector as error:
            raise statuses.invalid_selector(error) from error
        for requirement in selection.fields.requirements:
            check_field_label(encoding, requirement.path, selectable_fields)
        return selection

    @property
    def prefix(self) -> str:
        """The beginning of the keys of all selected objects."""
        return f"{self.namespace}/" if self.namespace else ""

    @property
    def selects_all(self) -> bool:
        """True if every object of the scope is selected."""
        return not (self.labels or self.fields or self.shard)

    def matches(self, stored: StoredObject | None) -> bool:
        if self._unrestricted:
            return stored is not None
        if stored is None or (self.namespace and stored.namespace != self.namespace):
            return False
        if self.labels and not self.labels.matches(stored.metadata.get("labels") or {}):
            return False
        if self.fields and not self.fields.matches(make_field_reader(stored)):
            return False
        return self.shard.matches(stored)
