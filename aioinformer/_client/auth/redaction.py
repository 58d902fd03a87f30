"""Keeps what a request's headers carried out of what is told of its answer.

A debugging proxy, or an echo server at the wrong address, sends headers back in its error page,
and that page becomes the message of an exception. Which header of a program's is secret nobody
can know (``X-Api-Key``, a cookie, ``Impersonate-User``), so all are hidden, but for the few that
say nothing of who asks. What an exec plugin writes may hold secrets that nobody has told us:
there, what looks like one is hidden.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

from aioinformer.errors import ServerError, Status

__all__ = ["REDACTED", "Redactor", "redact_diagnostics", "strip_quoted_response"]

REDACTED = "[credential]"

PUBLIC_HEADERS = frozenset({"accept", "accept-encoding", "user-agent", "host"})
"""Headers that may be shown."""

SCHEME_HEADERS = frozenset({"authorization", "proxy-authorization"})
"""Headers that begin with a word that is no secret: ``Bearer``."""

WHOLE_WORD_LENGTH = 5
"""Characters up to which a secret is hidden only where it stands as a word: hiding each ``1`` for
the sake of ``X-Debug: 1`` would leave no message readable."""

PROTECTED_REASONS = frozenset({"Expired", "Gone", "Timeout"})
"""Reasons that decide what the next request is: never hidden."""

TRUNCATION_MARK = "..."
"""How a text ends that ``one_line`` has cut off, perhaps in the middle of a secret."""

TEXT_ATTRIBUTES = ("message", "line", "hdr", "advice", "target")
"""Where exceptions keep texts beside their arguments: ours, and those of aiohttp's parser."""

MAX_DEPTH = 16
"""How deep details are searched; what lies deeper is dropped. Real ones are three deep."""


def strip_quoted_response(error: BaseException) -> None:
    """Cut what aiohttp's exceptions quote of an answer, in all that ``redact_error`` came from.

    An answer may repeat what was written, such as a Secret. Of their texts the beginning stays.
    """
    for each in _exception_chain(error):
        if isinstance(each, OSError):  # what the system says, which has not read the answer
            continue
        each.args = tuple(_strip_quote(argument) for argument in each.args)
        for name in TEXT_ATTRIBUTES:
            if isinstance(text := getattr(each, name, None), str):
                setattr(each, name, _strip_quote(text))


def _strip_quote(argument: object) -> object:
    if isinstance(argument, bytes):
        return b""
    return _QUOTE_START.split(argument, maxsplit=1)[0] if isinstance(argument, str) else argument


_QUOTE_START = re.compile("""[:'"\\n{]""")
"""Where a text may begin to quote."""


class Redactor:
    """Hides the values of some headers, in the spellings that answers have."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        """Make a mask.

        Args:
            headers: those sent, by name and value.
        """
        secrets = {secret for name, value in headers for secret in _header_secrets(name, value)}
        found = {spelling for secret in secrets for spelling in _iter_spellings(secret)}
        # The longest first: one may be a part of another.
        self._spellings = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_spelling_pattern, self._spellings)) or r"(?!)")

    def redact_complete(self, text: str) -> str:
        """``redact_complete`` without them."""
        return self._pattern.sub(REDACTED, text)

    def redact_prefix(self, text: str) -> str:
        """The same for a text that was broken off, perhaps in the middle of one."""
        masked = self.redact_complete(text).rstrip("\ufffd")  # half a character
        longest = min(len(masked), len(self._spellings[0]) if self._spellings else 0)
        for size in range(longest, 0, -1):
            if any(each.startswith(masked[-size:]) for each in self._spellings):
                return masked[:-size]
        return masked

    def redact(self, text: str) -> str:
        """The same for a text that may have been cut off and shows that with ``TRUNCATION_MARK``."""
        head = text.removesuffix(TRUNCATION_MARK)
        return (
            self.redact_complete(text)
            if head == text
            else f"{self.redact_prefix(head)}{TRUNCATION_MARK}"
        )

    def redact_error(self, error: BaseException) -> None:
        """Hide them in an exception and in all that it came from, in place.

        What its traceback shows, that is, and its repr: arguments, texts, the server's Status.
        """
        for each in _exception_chain(error):
            each.args = tuple(self._redact_argument(argument) for argument in each.args)
            for name in TEXT_ATTRIBUTES:
                if isinstance(text := getattr(each, name, None), str):
                    setattr(each, name, self.redact(text))
            if isinstance(each, ServerError):
                each.status = self.redact_status(each.status)

    def _redact_argument(self, argument: object) -> object:
        if isinstance(argument, bytes):  # a UnicodeDecodeError has all that was to be read
            return self.redact_complete(argument.decode("latin-1")).encode("latin-1", "replace")
        return self.redact(argument) if isinstance(argument, str) else argument

    def redact_status(self, status: Status) -> Status:
        """``redact_status`` without them. What decides the next request stays: code, wait, token."""
        return replace(
            status,
            reason=status.reason
            if status.reason in PROTECTED_REASONS
            else self.redact(status.reason),
            message=self.redact(status.message),
            details={
                self.redact_complete(key): self._redact_value(part)
                for key, part in status.details.items()
            },
        )

    def _redact_value(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        if isinstance(value, str):
            return self.redact_complete(value)
        if not isinstance(value, dict | list):
            return value
        if not depth:
            return None
        if isinstance(value, list):
            return [self._redact_value(each, depth - 1) for each in cast("Iterable[Any]", value)]
        named = cast("dict[str, Any]", value)
        return {
            self.redact_complete(key): self._redact_value(each, depth - 1)
            for key, each in named.items()
        }

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._spellings)} spellings>"


def _header_secrets(name: str, value: str) -> Iterator[str]:
    """What is secret in a header."""
    name, value = name.lower(), value.strip()
    if name in PUBLIC_HEADERS or not value:
        return
    if name in SCHEME_HEADERS:
        yield value.partition(" ")[2].strip() or value
    else:
        yield value
    word = value.rpartition(" ")[2]
    if len(word) > WHOLE_WORD_LENGTH:  # "Token abcdef" may come back without its scheme
        yield word


def _exception_chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, what it came from, and what that came from."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _iter_spellings(secret: str) -> Iterator[str]:
    """A secret as it is, and as JSON (Python's and Go's), HTML and URLs write it."""
    yield " ".join(secret.split())  # as it is in a text that was put on one line
    quoted = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    yield from (secret, quoted, plain, html.escape(secret), quote(secret, safe=""))
    for sign in "<>&":
        plain = plain.replace(sign, f"\\u{ord(sign):04x}")
    yield plain


def _spelling_pattern(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) > WHOLE_WORD_LENGTH else rf"(?<!\w){escaped}(?!\w)"


# -- what only looks secret --------------------------------------------------------------------

MAX_DIAGNOSTIC_LENGTH = 200
"""Characters shown of a program's diagnostics."""

MAX_SCANNED_LENGTH = 400
"""Characters looked at for that: looking takes time with their square."""

_STATE_WORDS = r"""(?: not | no | now | already | expired | invalid | incorrect | wrong | missing | empty
    | required | refused | rejected | revoked | unknown | malformed | unset ) \b"""
"""What may be said of a secret without telling it: ``the token is expired``."""

_NAMED_SECRET = re.compile(
    rf"""(?ix) ( (?: secret | token | passw\w* | pwd | \w*key | bearer | basic | credential\w* )
    ["']? (?: \s* [=:] \s*
          | \s+ (?: is | was ) (?: \s* [=:] \s* | \s+ ) (?! {_STATE_WORDS} )
          | \s+ (?! (?: is | was | has | not | file | expired | from | for ) \b ) ) )
    [^\s,;]+"""
)
"""What follows the name of a secret: ``token=...``, ``password is ...``, ``Bearer ...``."""

_OPAQUE_TOKEN = re.compile(r"(?=[^\s/:.]*\d)(?=[^\s/:.]*[a-zA-Z])[\w+/=~-]{16,}(?:\.[\w+/=~-]+)*")
"""A long word of letters and digits, such as a token: the parts of a path or a host are shorter,
or come after a dot, slash or colon."""


def redact_diagnostics(text: str) -> str:
    """One short line of ``redact_complete``, without what looks like a secret."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(printable.split())
    if len(line) > MAX_SCANNED_LENGTH:  # whole words: half a secret would not look like one
        line = line[:MAX_SCANNED_LENGTH].rpartition(" ")[0]
    line = _OPAQUE_TOKEN.sub(REDACTED, _NAMED_SECRET.sub(rf"\1{REDACTED}", line))
    return line if len(line) <= MAX_DIAGNOSTIC_LENGTH else f"{line[:MAX_DIAGNOSTIC_LENGTH]}…"
