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

__all__ = ["MASK", "Mask", "without_answer", "without_secrets"]

MASK = "[credential]"

OPEN = frozenset({"accept", "accept-encoding", "user-agent", "host"})
"""Headers that may be shown."""

SCHEMED = frozenset({"authorization", "proxy-authorization"})
"""Headers that begin with a word that is no secret: ``Bearer``."""

SHORT = 5
"""Characters up to which a secret is hidden only where it stands as a word: hiding each ``1`` for
the sake of ``X-Debug: 1`` would leave no message readable."""

MEANT = frozenset({"Expired", "Gone", "Timeout"})
"""Reasons that decide what the next request is: never hidden."""

CUT = "..."
"""How a text ends that ``one_line`` has cut off, perhaps in the middle of a secret."""

TEXTS = ("message", "line", "hdr", "advice", "target")
"""Where exceptions keep texts beside their arguments: ours, and those of aiohttp's parser."""

DEPTH = 16
"""How deep details are searched; what lies deeper is dropped. Real ones are three deep."""


def without_answer(error: BaseException) -> None:
    """Cut what aiohttp's exceptions quote of an answer, in all that ``error`` came from.

    An answer may repeat what was written, such as a Secret. Of their texts the beginning stays.
    """
    for each in _chain(error):
        if isinstance(each, OSError):  # what the system says, which has not read the answer
            continue
        each.args = tuple(_unquoted(argument) for argument in each.args)
        for name in TEXTS:
            if isinstance(text := getattr(each, name, None), str):
                setattr(each, name, _unquoted(text))


def _unquoted(argument: object) -> object:
    if isinstance(argument, bytes):
        return b""
    return _QUOTED.split(argument, maxsplit=1)[0] if isinstance(argument, str) else argument


_QUOTED = re.compile("""[:'"\\n{]""")
"""Where a text may begin to quote."""


class Mask:
    """Hides the values of some headers, in the spellings that answers have."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        """Make a mask.

        Args:
            headers: those sent, by name and value.
        """
        secrets = {secret for name, value in headers for secret in _secrets(name, value)}
        found = {spelling for secret in secrets for spelling in _spellings(secret)}
        # The longest first: one may be a part of another.
        self._spellings = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_pattern, self._spellings)) or r"(?!)")

    def text(self, text: str) -> str:
        """``text`` without them."""
        return self._pattern.sub(MASK, text)

    def beginning(self, text: str) -> str:
        """The same for a text that was broken off, perhaps in the middle of one."""
        masked = self.text(text).rstrip("\ufffd")  # half a character
        longest = min(len(masked), len(self._spellings[0]) if self._spellings else 0)
        for size in range(longest, 0, -1):
            if any(each.startswith(masked[-size:]) for each in self._spellings):
                return masked[:-size]
        return masked

    def told(self, text: str) -> str:
        """The same for a text that may have been cut off and shows that with ``CUT``."""
        head = text.removesuffix(CUT)
        return self.text(text) if head == text else f"{self.beginning(head)}{CUT}"

    def error(self, error: BaseException) -> None:
        """Hide them in an exception and in all that it came from, in place.

        What its traceback shows, that is, and its repr: arguments, texts, the server's Status.
        """
        for each in _chain(error):
            each.args = tuple(self._argument(argument) for argument in each.args)
            for name in TEXTS:
                if isinstance(text := getattr(each, name, None), str):
                    setattr(each, name, self.told(text))
            if isinstance(each, ServerError):
                each.status = self.status(each.status)

    def _argument(self, argument: object) -> object:
        if isinstance(argument, bytes):  # a UnicodeDecodeError has all that was to be read
            return self.text(argument.decode("latin-1")).encode("latin-1", "replace")
        return self.told(argument) if isinstance(argument, str) else argument

    def status(self, status: Status) -> Status:
        """``status`` without them. What decides the next request stays: code, wait, token."""
        return replace(
            status,
            reason=status.reason if status.reason in MEANT else self.told(status.reason),
            message=self.told(status.message),
            details={self.text(key): self._part(part) for key, part in status.details.items()},
        )

    def _part(self, part: Any, depth: int = DEPTH) -> Any:
        if isinstance(part, str):
            return self.text(part)
        if not isinstance(part, dict | list):
            return part
        if not depth:
            return None
        if isinstance(part, list):
            return [self._part(each, depth - 1) for each in cast("Iterable[Any]", part)]
        named = cast("dict[str, Any]", part)
        return {self.text(key): self._part(each, depth - 1) for key, each in named.items()}

    def __repr__(self) -> str:
        return f"<Mask of {len(self._spellings)} spellings>"


def _secrets(name: str, value: str) -> Iterator[str]:
    """What is secret in a header."""
    name, value = name.lower(), value.strip()
    if name in OPEN or not value:
        return
    if name in SCHEMED:
        yield value.partition(" ")[2].strip() or value
    else:
        yield value
    word = value.rpartition(" ")[2]
    if len(word) > SHORT:  # "Token abcdef" may come back without its scheme
        yield word


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, what it came from, and what that came from."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, and as JSON (Python's and Go's), HTML and URLs write it."""
    yield " ".join(secret.split())  # as it is in a text that was put on one line
    quoted = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    yield from (secret, quoted, plain, html.escape(secret), quote(secret, safe=""))
    for sign in "<>&":
        plain = plain.replace(sign, f"\\u{ord(sign):04x}")
    yield plain


def _pattern(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) > SHORT else rf"(?<!\w){escaped}(?!\w)"


# -- what only looks secret --------------------------------------------------------------------

SHOWN = 200
"""Characters shown of a program's diagnostics."""

LOOKED_AT = 400
"""Characters looked at for that: looking takes time with their square."""

_SAID = r"""(?: not | no | now | already | expired | invalid | incorrect | wrong | missing | empty
    | required | refused | rejected | revoked | unknown | malformed | unset ) \b"""
"""What may be said of a secret without telling it: ``the token is expired``."""

_NAMED = re.compile(
    rf"""(?ix) ( (?: secret | token | passw\w* | pwd | \w*key | bearer | basic | credential\w* )
    ["']? (?: \s* [=:] \s*
          | \s+ (?: is | was ) (?: \s* [=:] \s* | \s+ ) (?! {_SAID} )
          | \s+ (?! (?: is | was | has | not | file | expired | from | for ) \b ) ) )
    [^\s,;]+"""
)
"""What follows the name of a secret: ``token=...``, ``password is ...``, ``Bearer ...``."""

_OPAQUE = re.compile(r"(?=[^\s/:.]*\d)(?=[^\s/:.]*[a-zA-Z])[\w+/=~-]{16,}(?:\.[\w+/=~-]+)*")
"""A long word of letters and digits, such as a token: the parts of a path or a host are shorter,
or come after a dot, slash or colon."""


def without_secrets(text: str) -> str:
    """One short line of ``text``, without what looks like a secret."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(printable.split())
    if len(line) > LOOKED_AT:  # whole words: half a secret would not look like one
        line = line[:LOOKED_AT].rpartition(" ")[0]
    line = _OPAQUE.sub(MASK, _NAMED.sub(rf"\1{MASK}", line))
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
