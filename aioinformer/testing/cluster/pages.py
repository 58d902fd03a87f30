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

from aioinformer.testing.cluster.history import History
from aioinformer.testing.cluster.selection import Selection
from aioinformer.testing.cluster.storage import Collection, View
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Frame, ListForm, Stored

__all__ = ["PageOptions", "page", "parse_version"]

INCONSISTENT = -1
"""The resourceVersion in a token for the rest of a list whose snapshot is forgotten."""


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The query parameters of a list, as text where the server reads text."""

    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    cached: bool = True
    """Whether the watch cache answers, and not etcd: their tokens differ by a slash (recordings 10
    and 44)."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page starts, and of which state."""

    version: int
    start: str = ""
    limit: int = 0


def page(
    collection: Collection,
    history: History,
    selection: Selection,
    options: PageOptions,
    *,
    current: int,
    form: ListForm,
) -> bytes:
    """The body of the answer, in this form.

    Raises:
        BadRequest: the token isn't one.
        Expired: the state that was asked for is forgotten.
        Invalid: options that exclude each other.
        ServerFailure: the resourceVersion is ahead of ``current``, or no number.
    """
    _check(options)
    place = _place(options, selection, history, current)
    resource = collection.encoding.resource
    later = history.since(place.version, resource) if place.version < current else ()
    state = collection.view(later, prefix=selection.prefix, start=place.start)
    rows, taken = _rows(state, selection, place.limit)
    left = len(state.keys) - taken
    token = ""
    if left:
        slash = "/" if options.cached else ""
        token = _token(place.version, slash + state.keys[taken - 1][len(selection.prefix) :])
    remaining = left if selection.whole else 0  # what a selector leaves over can't be counted
    return form.page(rows, Frame(place.version, token, remaining, str(selection.shard)))


def _rows(state: View, selection: Selection, limit: int) -> tuple[list[Stored], int]:
    """The selected objects, up to the limit, and how many keys were read for them."""
    rows: list[Stored] = []
    for number, key in enumerate(state.keys, start=1):
        stored = state[key]
        if selection.matches(stored):
            rows.append(stored)
            if len(rows) == limit:
                return rows, number
    return rows, len(state.keys)


# -- which state -------------------------------------------------------------------------------


def parse_version(text: str, *, watched: bool = False) -> int:
    """A resourceVersion as a number; 0 for none.

    Raises:
        BadRequest, ServerFailure: it is none, for a list or a watch.
    """
    if text and not re.fullmatch("[0-9]+", text):
        raise statuses.malformed_version(text, watched=watched)
    return int(text or 0)


def _check(options: PageOptions) -> None:
    """The combinations that ``ValidateListOptions`` of apimachinery forbids."""
    name = "resourceVersionMatch"
    if not options.match:
        return
    if not options.resource_version:
        raise statuses.invalid_option(
            name, f"{name} is forbidden unless resourceVersion is provided"
        )
    if options.continue_token:
        raise statuses.invalid_option(name, f"{name} is forbidden when continue is provided")
    if options.match not in ("Exact", "NotOlderThan"):
        raise statuses.unsupported_option(name, options.match, ("Exact", "NotOlderThan", ""))
    if options.match == "Exact" and options.resource_version == "0":
        raise statuses.invalid_option(name, f'{name} "exact" is forbidden for resourceVersion "0"')


def _place(options: PageOptions, selection: Selection, history: History, current: int) -> _Place:
    if options.continue_token:
        return _continued(options, selection, history, current)
    version = parse_version(options.resource_version)
    if version > current:
        raise statuses.too_large_version(version, current)
    if options.resource_version == "0":
        return _Place(current)  # served from the watch cache, which ignores limits
    # A limit makes a bare resourceVersion mean exactly that one, for compatibility.
    exact = options.match == "Exact" or (version and options.limit and not options.match)
    if not exact:
        return _Place(current, limit=options.limit)
    if version < history.compacted:
        raise statuses.version_gone()
    return _Place(version, limit=options.limit)


def _continued(
    options: PageOptions, selection: Selection, history: History, current: int
) -> _Place:
    if options.resource_version not in ("", "0"):
        raise statuses.bad_request("specifying resource version is not allowed when using continue")
    token = _read(options.continue_token)
    start = selection.prefix + token.start.lstrip("/")
    if token.rv == INCONSISTENT:
        return _Place(current, start, options.limit)
    if token.rv < history.compacted:
        raise statuses.token_gone(_token(INCONSISTENT, token.start.lstrip("/").rstrip("\0")))
    if token.rv > current:
        raise statuses.too_large_version(token.rv, current)
    return _Place(token.rv, start, options.limit)


# -- tokens ------------------------------------------------------------------------------------


class _Token(msgspec.Struct):
    """What a continue token says: apimachinery's ``continueToken``."""

    v: str
    rv: int
    start: str


def _token(version: int, last: str) -> str:
    """The token for what follows ``last``: the next possible key is that and a zero byte."""
    body = msgspec.json.encode(_Token("meta.k8s.io/v1", version, f"{last}\0"))
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _read(token: str) -> _Token:
    body = _unwrapped(token)
    try:
        read = msgspec.json.decode(body, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_token(_complaint(body, error)) from error
    if read.v != "meta.k8s.io/v1":
        why = f'server does not recognize this encoded version "{read.v}"'
        raise statuses.bad_token(why)
    return read


def _unwrapped(token: str) -> bytes:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        good = re.match("[A-Za-z0-9_-]*", token)
        place = good.end() if good else 0
        raise statuses.bad_token(f"illegal base64 data at input byte {place}") from error


def _complaint(body: bytes, error: Exception) -> str:
    """What Go's JSON decoder says, where it is about the first byte (recording 23)."""
    if not body:
        return "unexpected end of JSON input"
    first = chr(body[0])
    if first in '{["-0123456789tfn':
        return str(error)
    shown = first if first.isprintable() and first.isascii() else f"\\u{ord(first):04x}"
    return f"invalid character '{shown}' looking for beginning of value"
