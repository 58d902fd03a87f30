"""Scanners that find a place in JSON whose bytes arrive in pieces.

Two places of a list must be found before its JSON is complete: its own ``items``, and the end of an
item that is too long to be cut at a separator. Both scanners read every byte once, however the
bytes are cut, and look at strings, braces and colons only: the JSON decoder checks all bytes later.
"""

from __future__ import annotations

import re

from msgspec import DecodeError
from msgspec.json import Decoder

_OUTSIDE_STRING = re.compile(rb'"[^"\\]*"|["{}]')  # a string without escapes is one match
_INSIDE_STRING = re.compile(rb'[\\"]')
_MEMBERS = re.compile(rb'["{}:]')
_VALUE = re.compile(rb"[^ \t\r\n]")

ITEMS_KEY = b'"items"'
MAX_KEY_BYTES = len('"items"') - len("items") + len("\\u0000") * len("items")
"""The longest spelling of ``"items"``: each letter as an escape of six bytes."""

_decode_text = Decoder(str).decode


class BraceScanner:
    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def find_end(self, data: bytes, at: int) -> int | None:
        """Return the offset after the closing brace; ``None`` if the brace has yet to arrive.

        Each call continues the one before, from the offset ``at`` of ``data``.
        """
        if self._escaped and at < len(data):
            self._escaped, at = False, at + 1
        while match := (_INSIDE_STRING if self._in_string else _OUTSIDE_STRING).search(data, at):
            at = match.end()
            token = match[0]
            if token == b"\\":
                if at == len(data):  # the escaped character has yet to arrive
                    self._escaped = True
                    break
                at += 1
            elif token == b'"':
                self._in_string = not self._in_string
            elif token in (b"{", b"}"):
                self._depth += 1 if token == b"{" else -1
                if not self._depth:
                    return at
        return None


class ItemsScanner:
    """A search for the key ``items`` of the outermost object, in a buffer that grows.

    A key may be spelled with escapes. Nested objects and look-alikes in strings don't count.
    """

    def __init__(self) -> None:
        self.occurrences = 0
        """Keys ``items`` found so far. In legal JSON a key may occur twice."""
        self._at = 0
        self._depth = 0
        self._string_start: int | None = None
        self._last_string = (0, 0)
        """The last complete string in the outermost object: a key if a colon is next."""
        self._is_value_next = False

    def find_array(self, buffer: bytes) -> int | None:
        """Scan the bytes that were added to ``buffer`` since the last call.

        Return the offset after the opening bracket of ``items``; ``None`` if it has yet to arrive.
        """
        while self._at < len(buffer):
            if self._is_value_next:
                value = _VALUE.search(buffer, self._at)
                self._at = len(buffer) if value is None else value.start()
                if value is None:
                    return None
                self._is_value_next = False
                if value[0] == b"[":
                    self._at += 1
                    return self._at
            self._scan_token(buffer)
        return None

    def rebase(self) -> None:
        """Continue at the start of another buffer, which follows the array."""
        self._at, self._last_string = 0, (0, 0)

    def _scan_token(self, buffer: bytes) -> None:
        start = self._string_start
        outside = _MEMBERS if self._depth == 1 else _OUTSIDE_STRING
        found = (outside if start is None else _INSIDE_STRING).search(buffer, self._at)
        if found is None:
            self._at = len(buffer)
            return
        self._at = found.end()
        match found[0]:
            case b"\\":
                self._at += 1  # the escaped character, which may not have arrived yet
            case b'"' if start is None:
                self._string_start = found.start()
            case b'"':
                if start is not None and self._depth == 1:
                    self._last_string = (start, self._at)
                self._string_start = None
            case b"{":
                self._depth += 1
            case b"}":
                self._depth -= 1
            case b":":
                if _is_items_key(buffer, *self._last_string):
                    self.occurrences += 1
                    self._is_value_next = True
            case _:
                pass  # a whole string in a nested object


def _is_items_key(buffer: bytes, start: int, end: int) -> bool:
    if end - start > MAX_KEY_BYTES:
        return False
    text = buffer[start:end]
    if b"\\" not in text:
        return text == ITEMS_KEY
    try:
        return _decode_text(text) == "items"
    except (DecodeError, UnicodeDecodeError):
        return False  # the decoding of the whole list reports the malformed key
