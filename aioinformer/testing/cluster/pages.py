"""Pages of a list: the state that a page shows, its first key, and the token of the next page.

Every page of a list shows the same state. The continue token carries the resourceVersion of the
first page, and later pages undo the changes since then. The rules for ``resourceVersion``,
``resourceVersionMatch`` and ``limit`` are those of the API concepts page of Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field

import msgspec

from aioinformer.testing.cluster.storage import Collection, CollectionSnapshot, Storage
from aioinformer.testing.wire import statuses, version_statuses
from aioinformer.testing.wire.encoding import ListEncoder, ListMeta, StoredObject
from aioinformer.testing.wire.selection import Selection, SelectorQuery
from aioinformer.testing.wire.tables import Include, ObjectForm

INCONSISTENT_VERSION = -1
"""The resourceVersion in a token for the rest of a list whose snapshot is forgotten."""

_CONTINUE_FORMAT = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The options of a list request, as ``ListRequestOptions`` documents them."""

    selectors: SelectorQuery = field(default_factory=SelectorQuery)
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    form: ObjectForm = "whole"
    include: Include = "Metadata"


@dataclass(frozen=True, slots=True)
class _PageStart:
    version: int
    key: str = ""
    limit: int = 0
    """0 for all objects."""


@dataclass(frozen=True, slots=True)
class Page:
    """The objects of one page of a list, and the metadata of the page."""

    rows: list[StoredObject]
    list_meta: ListMeta


def encode_page(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    query: ListQuery,
    *,
    encoder: ListEncoder,
    from_watch_cache: bool,
) -> bytes:
    """Return the body of the answer to a list request. ``select_page`` documents the errors."""
    page = select_page(storage, collection, selection, query, from_watch_cache=from_watch_cache)
    return encoder.encode_list(page.rows, page.list_meta)


def select_page(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    query: ListQuery,
    *,
    from_watch_cache: bool,
) -> Page:
    """Return the page that a list request asks for.

    ``selection`` is the parsed ``query.selectors``. The tokens of the watch cache begin with a
    slash, those of etcd don't.

    Raises:
        BadRequest: the continue token is malformed.
        Expired: the requested state is forgotten.
        Invalid: options that exclude each other.
        ServerFailure: the resourceVersion is not reached yet, or not a number.
    """
    _check_query(query)
    start = _find_start(query, selection, storage)
    later = (
        storage.change_log.changes_since(start.version, collection.encoding.resource)
        if start.version < storage.version
        else ()
    )
    state = collection.snapshot_before(later, prefix=selection.prefix, start=start.key)
    rows, keys_read = _select_rows(state, selection, start.limit)
    keys_left = len(state.keys) - keys_read
    token = ""
    if keys_left:
        slash = "/" if from_watch_cache else ""
        last = state.keys[keys_read - 1][len(selection.prefix) :]
        token = _encode_token(start.version, slash + last)
    # The objects that a selector selects in the rest aren't known without reading them.
    remaining = keys_left if selection.selects_all else 0
    return Page(rows, ListMeta(start.version, token, remaining, str(selection.shard)))


def _select_rows(
    state: CollectionSnapshot, selection: Selection, limit: int
) -> tuple[list[StoredObject], int]:
    """Return the selected objects, up to the limit, and the number of keys read for them."""
    rows: list[StoredObject] = []
    for number, key in enumerate(state.keys, start=1):
        stored = state[key]
        if selection.matches(stored):
            rows.append(stored)
            if len(rows) == limit:
                return rows, number
    return rows, len(state.keys)


# -- the state of a page -----------------------------------------------------------------------


def parse_version(text: str, *, for_watch: bool = False) -> int:
    """Return a resourceVersion as a number; 0 for an empty text.

    Raises:
        BadRequest: the version of a list is not a number.
        ServerFailure: the version of a watch is not a number.
    """
    if text and not re.fullmatch("[0-9]+", text):
        raise version_statuses.malformed_version(text, for_watch=for_watch)
    return int(text or 0)


def _check_query(query: ListQuery) -> None:
    """Check for the combinations that ``ValidateListOptions`` of apimachinery forbids."""
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


def _find_start(query: ListQuery, selection: Selection, storage: Storage) -> _PageStart:
    if query.continue_token:
        return _continue_from_token(query, selection, storage)
    version = parse_version(query.resource_version)
    if version > storage.version:
        raise version_statuses.too_large_version(version, storage.version)
    if query.resource_version == "0":
        return _PageStart(storage.version)  # served from the watch cache, which ignores limits
    # A limit makes a bare resourceVersion mean exactly that one, for compatibility.
    exact = query.match == "Exact" or (version and query.limit and not query.match)
    if not exact:
        return _PageStart(storage.version, limit=query.limit)
    # The compacted version itself can be shown: its state is that before the oldest kept change.
    if version < storage.change_log.compacted_version:
        raise version_statuses.expired_version()
    return _PageStart(version, limit=query.limit)


def _continue_from_token(query: ListQuery, selection: Selection, storage: Storage) -> _PageStart:
    if query.resource_version not in ("", "0"):
        raise statuses.bad_request("specifying resource version is not allowed when using continue")
    token = _decode_token(query.continue_token)
    key = selection.prefix + token.start.lstrip("/")
    if token.rv == INCONSISTENT_VERSION:  # the client accepted the present state for the rest
        return _PageStart(storage.version, key, query.limit)
    if token.rv < storage.change_log.compacted_version:
        last = token.start.lstrip("/").rstrip("\0")
        raise version_statuses.expired_token(_encode_token(INCONSISTENT_VERSION, last))
    if token.rv > storage.version:
        raise version_statuses.too_large_version(token.rv, storage.version)
    return _PageStart(token.rv, key, query.limit)


# -- tokens ------------------------------------------------------------------------------------


class _ContinueToken(msgspec.Struct):
    """apimachinery's ``continueToken``."""

    v: str
    rv: int
    start: str


def _encode_token(version: int, last: str) -> str:
    # The smallest key that is greater than ``last`` is ``last`` and a zero byte.
    body = msgspec.json.encode(_ContinueToken(_CONTINUE_FORMAT, version, f"{last}\0"))
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _decode_token(token: str) -> _ContinueToken:
    body = _decode_base64(token)
    try:
        decoded = msgspec.json.decode(body, type=_ContinueToken)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise version_statuses.invalid_token(_go_decode_error(body, error)) from error
    if decoded.v != _CONTINUE_FORMAT:
        reason = f'server does not recognize this encoded version "{decoded.v}"'
        raise version_statuses.invalid_token(reason)
    return decoded


def _decode_base64(token: str) -> bytes:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        valid = re.match("[A-Za-z0-9_-]*", token)
        offset = valid.end() if valid else 0
        raise version_statuses.invalid_token(
            f"illegal base64 data at input byte {offset}"
        ) from error


def _go_decode_error(body: bytes, error: Exception) -> str:
    """Return the text of Go's JSON decoder if the first byte is wrong."""
    if not body:
        return "unexpected end of JSON input"
    first = chr(body[0])
    if first in '{["-0123456789tfn':
        return str(error)
    shown = first if first.isprintable() and first.isascii() else f"\\u{ord(first):04x}"
    return f"invalid character '{shown}' looking for beginning of value"
