"""One page of a list: which state it shows, where it starts, and the token for the next one.

Every page of a list shows the same state: the token carries its resourceVersion, and the changes
since are undone. The rules for ``resourceVersion``, ``resourceVersionMatch`` and ``limit`` are
those of the API concepts page of Kubernetes; recordings 10 to 15, 20, 23, 62 and 63.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

import msgspec

from aioinformer.testing.cluster.history import ChangeLog
from aioinformer.testing.cluster.selection import Selection
from aioinformer.testing.cluster.storage import Collection, CollectionSnapshot
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import ListEncoder, ListMeta, StoredObject

__all__ = ["ListQuery", "encode_page", "parse_version"]

INCONSISTENT_VERSION = -1
"""The resourceVersion in a token for the rest of a list whose snapshot is forgotten."""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The query parameters of a list, as text where the server reads text."""

    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    from_watch_cache: bool = True
    """Whether the watch cache answers, and not etcd: their tokens differ by a slash (recordings 10
    and 44)."""


@dataclass(frozen=True, slots=True)
class _PageStart:
    """Where a page starts, and of which state."""

    version: int
    start: str = ""
    limit: int = 0


def encode_page(
    collection: Collection,
    change_log: ChangeLog,
    selection: Selection,
    query: ListQuery,
    *,
    current: int,
    encoder: ListEncoder,
) -> bytes:
    """The body of the answer, in this form.

    Raises:
        BadRequest: the token isn't one.
        Expired: the state that was asked for is forgotten.
        Invalid: options that exclude each other.
        ServerFailure: the resourceVersion is ahead of ``current``, or no number.
    """
    _check_query(query)
    place = _find_start(query, selection, change_log, current)
    resource = collection.encoding.resource
    later = change_log.changes_since(place.version, resource) if place.version < current else ()
    state = collection.snapshot_before(later, prefix=selection.prefix, start=place.start)
    rows, taken = _select_rows(state, selection, place.limit)
    left = len(state.keys) - taken
    token = ""
    if left:
        slash = "/" if query.from_watch_cache else ""
        token = _encode_token(place.version, slash + state.keys[taken - 1][len(selection.prefix) :])
    remaining = left if selection.selects_all else 0  # what a selector leaves over can't be counted
    return encoder.encode_list(
        rows, ListMeta(place.version, token, remaining, str(selection.shard))
    )


def _select_rows(
    state: CollectionSnapshot, selection: Selection, limit: int
) -> tuple[list[StoredObject], int]:
    """The selected objects, up to the limit, and how many keys were read for them."""
    rows: list[StoredObject] = []
    for number, key in enumerate(state.keys, start=1):
        stored = state[key]
        if selection.matches(stored):
            rows.append(stored)
            if len(rows) == limit:
                return rows, number
    return rows, len(state.keys)


# -- which state -------------------------------------------------------------------------------


def parse_version(text: str, *, for_watch: bool = False) -> int:
    """A resourceVersion as a number; 0 for none.

    Raises:
        BadRequest, ServerFailure: it is none, for a list or a watch.
    """
    if text and not re.fullmatch("[0-9]+", text):
        raise statuses.malformed_version(text, for_watch=for_watch)
    return int(text or 0)


def _check_query(query: ListQuery) -> None:
    """The combinations that ``ValidateListOptions`` of apimachinery forbids."""
    name = "resourceVersionMatch"
    if not query.match:
        return
    if not query.resource_version:
        raise statuses.invalid_option(
            name, f"{name} is forbidden unless resourceVersion is provided"
        )
    if query.continue_token:
        raise statuses.invalid_option(name, f"{name} is forbidden when continue is provided")
    if query.match not in ("Exact", "NotOlderThan"):
        raise statuses.unsupported_option(name, query.match, ("Exact", "NotOlderThan", ""))
    if query.match == "Exact" and query.resource_version == "0":
        raise statuses.invalid_option(name, f'{name} "exact" is forbidden for resourceVersion "0"')


def _find_start(
    query: ListQuery, selection: Selection, change_log: ChangeLog, current: int
) -> _PageStart:
    if query.continue_token:
        return _continue_from_token(query, selection, change_log, current)
    version = parse_version(query.resource_version)
    if version > current:
        raise statuses.too_large_version(version, current)
    if query.resource_version == "0":
        return _PageStart(current)  # served from the watch cache, which ignores limits
    # A limit makes a bare resourceVersion mean exactly that one, for compatibility.
    exact = query.match == "Exact" or (version and query.limit and not query.match)
    if not exact:
        return _PageStart(current, limit=query.limit)
    if version < change_log.compacted_version:
        raise statuses.expired_version()
    return _PageStart(version, limit=query.limit)


def _continue_from_token(
    query: ListQuery, selection: Selection, change_log: ChangeLog, current: int
) -> _PageStart:
    if query.resource_version not in ("", "0"):
        raise statuses.bad_request("specifying resource version is not allowed when using continue")
    token = _decode_token(query.continue_token)
    start = selection.prefix + token.start.lstrip("/")
    if token.rv == INCONSISTENT_VERSION:
        return _PageStart(current, start, query.limit)
    if token.rv < change_log.compacted_version:
        raise statuses.expired_token(
            _encode_token(INCONSISTENT_VERSION, token.start.lstrip("/").rstrip("\0"))
        )
    if token.rv > current:
        raise statuses.too_large_version(token.rv, current)
    return _PageStart(token.rv, start, query.limit)


# -- tokens ------------------------------------------------------------------------------------


class _ContinueToken(msgspec.Struct):
    """What a continue token says: apimachinery's ``continueToken``."""

    v: str
    rv: int
    start: str


def _encode_token(version: int, last: str) -> str:
    """The token for what follows ``last``: the next possible key is that and a zero byte."""
    body = msgspec.json.encode(_ContinueToken("meta.k8s.io/v1", version, f"{last}\0"))
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _decode_token(token: str) -> _ContinueToken:
    body = _decode_base64(token)
    try:
        read = msgspec.json.decode(body, type=_ContinueToken)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.invalid_token(_go_decode_error(body, error)) from error
    if read.v != "meta.k8s.io/v1":
        why = f'server does not recognize this encoded version "{read.v}"'
        raise statuses.invalid_token(why)
    return read


def _decode_base64(token: str) -> bytes:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        good = re.match("[A-Za-z0-9_-]*", token)
        place = good.end() if good else 0
        raise statuses.invalid_token(f"illegal base64 data at input byte {place}") from error


def _go_decode_error(body: bytes, error: Exception) -> str:
    """What Go's JSON decoder says, where it is about the first byte (recording 23)."""
    if not body:
        return "unexpected end of JSON input"
    first = chr(body[0])
    if first in '{["-0123456789tfn':
        return str(error)
    shown = first if first.isprintable() and first.isascii() else f"\\u{ord(first):04x}"
    return f"invalid character '{shown}' looking for beginning of value"
