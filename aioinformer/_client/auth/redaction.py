"""Removal of secrets from texts and exceptions.

A debugging proxy, or an echo server at the wrong address, sends the headers of a request back in
its error page, which becomes the message of an exception. The library can't know which of the
program's headers are secret, so a ``Redactor`` hides all of them except a few that identify nobody.
The diagnostics of an exec plugin may contain secrets that this library doesn't know;
``redact_diagnostics`` hides the words that look like secrets.
"""

from __future__ import annotations

import html
import json
import re
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, cast
from urllib.parse import quote

from aiohttp.http import RawResponseMessage
from msgspec.structs import replace

from aioinformer._core.objects.decode_errors import discard_input, iter_related
from aioinformer._core.quantities import quantity
from aioinformer.errors import InformerError, ServerError, Status
from aioinformer.errors.texts import one_line

REDACTED = "[credential]"

PUBLIC_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "user-agent", "host"),
        *("impersonate-user", "impersonate-group", "impersonate-uid"),
    }
)
"""Headers whose values are not secret. The extra values of a user may be."""

SCHEME_HEADERS = frozenset({"authorization", "proxy-authorization"})
"""Headers whose first word is not secret, such as ``Bearer``."""

WHOLE_WORD_LENGTH = 5
"""Maximum length of secrets that are hidden only as a separate word. To hide each ``1`` because of
``X-Debug: 1`` would make every message unreadable."""

END_LENGTH = 6
"""Characters of a secret by which it is looked up: a text is searched for all secrets at once."""

FEW_SECRETS = 20
"""Secrets that are searched for one by one, also in a text of megabytes."""

_PLAIN = re.compile(r"[\w.~-]+", re.ASCII)
"""Characters that are the same in all spellings."""

_PLAIN_END = re.compile(rf"[\w.~-]{{{END_LENGTH}}}", re.ASCII)

PROTECTED_REASONS = frozenset({"Expired", "Gone", "Timeout"})
"""Reasons that are never hidden, because the reflector chooses its next request by them."""

TRUNCATION_MARK = "..."
"""The end of a text that ``one_line`` has cut off, perhaps in the middle of a secret."""

TEXT_ATTRIBUTES = ("message", "line", "hdr", "advice", "target")
"""Attributes with texts of this library's exceptions, and of those of aiohttp's parser."""

MAX_DEPTH = 16
"""Maximum depth of details. Deeper values are dropped; real details have three levels."""


def describe_place(error: BaseException, *, without: str) -> str:
    """Return where an exception of the program was raised, such as ``at shop.py:12``.

    The place is shown instead of the exception if its text, and so its traceback, may hold secrets.
    ``without`` is the file that has called the program.
    """
    places = [
        f"at {PurePath(frame.f_code.co_filename).name}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename != without
    ]
    return places[-1] if places else ""


def strip_quoted_response(error: BaseException) -> None:
    """Remove what aiohttp's exceptions quote of a response, from ``error`` and those related to it.

    A response may contain a Secret. The beginning of each text, which quotes nothing, is kept. The
    tracebacks are removed, because their frames hold the received bytes.
    """
    for each in iter_related(discard_input(error)):
        # A UnicodeError needs all of its arguments. The text of the system quotes no response.
        if not isinstance(each, OSError | UnicodeError):
            each.args = tuple(_strip_quote(argument) for argument in each.args)
        for name in TEXT_ATTRIBUTES:
            found: object = getattr(each, name, None)
            if found is not None and not isinstance(each, InformerError):
                setattr(each, name, _strip_quote(found))


def _strip_quote(argument: object) -> object:
    if isinstance(argument, str):
        return _QUOTE_START.split(argument, maxsplit=1)[0]
    if isinstance(argument, bytes):
        return b""
    # aiohttp's error about a lost connection has the head of the response as its message.
    return type(argument).__name__ if isinstance(argument, RawResponseMessage) else argument


_QUOTE_START = re.compile("""[:'"\\n{]""")
"""The characters at which a text may begin to quote."""


class Redactor:
    """A filter that hides the values of headers, in each spelling that a response may contain."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        self._secrets = {
            secret for name, value in headers for secret in _header_secrets(name, value)
        }
        # Of most ends there is one secret. A list for each would lead to full garbage collections.
        self._by_end = dict[str, str]()
        """A secret by ``END_LENGTH`` characters that each of its spellings contains, or by at most
        those at the end of each spelling. More secrets begin alike than end alike."""
        self._others_by_end: dict[str, list[str]] = defaultdict(list)
        for secret in self._secrets:
            if found := _PLAIN_END.search(secret[::-1]):
                self._add(found[0][::-1], secret)
                continue
            for end in {each[-END_LENGTH:] for each in _iter_spellings(secret)}:
                self._add(end, secret)
        self._sizes = {*map(len, self._by_end)}

    def _add(self, end: str, secret: str) -> None:
        if self._by_end.setdefault(end, secret) is not secret:
            self._others_by_end[end].append(secret)

    def redact_complete(self, text: str) -> str:
        found = {
            spelling
            for secret in self._find_likely(text)
            for spelling in _iter_spellings(secret, len(text))
            if spelling in text
        }
        if not found:
            return text
        # The longest first, because one spelling may be a part of another.
        ordered = sorted(found, key=len, reverse=True)
        return re.sub("|".join(map(_spelling_pattern, ordered)), REDACTED, text)

    def _find_likely(self, text: str) -> Iterable[str]:
        """Return the secrets that a text may contain, a few or those of which it has an end."""
        if len(self._secrets) < FEW_SECRETS:
            return self._secrets
        parts = {text[i : i + size] for size in self._sizes for i in range(len(text) - size + 1)}
        ends = parts & self._by_end.keys()
        return [
            each for end in ends for each in (self._by_end[end], *self._others_by_end.get(end, ()))
        ]

    def redact_prefix(self, text: str) -> str:
        """Return a text without the secrets that was cut off, perhaps in the middle of a secret."""
        redacted = self.redact_complete(text).rstrip("\ufffd")  # the rest of a cut character
        size = cut = len(redacted)
        short = tuple(redacted[start:] for start in range(max(0, size - END_LENGTH + 1), size))
        places: dict[str, list[int]] = defaultdict(list)
        for start in range(size - END_LENGTH + 1):
            places[redacted[start : start + END_LENGTH]].append(start)
        for secret in self._secrets:
            head = secret[:END_LENGTH]  # of each spelling, if it is plain
            if _PLAIN_END.fullmatch(head) and head not in places and not head.startswith(short):
                continue
            for spelling in _iter_spellings(secret, size):
                if spelling.startswith(short):
                    cut = min(cut, *(size - len(e) for e in short if spelling.startswith(e)))
                for place in places.get(spelling[:END_LENGTH], ()):
                    if place < cut and spelling.startswith(redacted[place:]):
                        cut = place
        return redacted[:cut]

    def redact(self, text: str) -> str:
        """Return a text without the secrets; it was cut if it ends with ``TRUNCATION_MARK``."""
        head = text.removesuffix(TRUNCATION_MARK)
        if head == text:
            return self.redact_complete(text)
        return f"{self.redact_prefix(head)}{TRUNCATION_MARK}"

    def redact_error(self, error: BaseException) -> None:
        """Hide the secrets in all that a traceback or repr shows of an exception, in place."""
        for each in iter_related(error):
            each.args = tuple(self._redact_argument(argument) for argument in each.args)
            for name in TEXT_ATTRIBUTES:
                if isinstance(text := getattr(each, name, None), str):
                    setattr(each, name, self.redact(text))
            if isinstance(each, ServerError):
                each.status = self.redact_status(each.status)

    def _redact_argument(self, argument: object) -> object:
        if isinstance(argument, bytes):  # a UnicodeDecodeError holds all of its input
            return self.redact_complete(argument.decode("latin-1")).encode("latin-1", "replace")
        return self.redact(argument) if isinstance(argument, str) else argument

    def redact_status(self, status: Status) -> Status:
        """Return ``status`` redacted. The reflector needs code, wait and token as they are."""
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
        return f"<Redactor of {quantity(len(self._secrets), 'secret')}>"


def _header_secrets(name: str, value: str) -> Iterator[str]:
    name, value = name.lower(), value.strip()
    if name in PUBLIC_HEADERS or not value:
        return
    if name in SCHEME_HEADERS:
        yield value.partition(" ")[2].strip() or value
    else:
        yield value
    word = value.rpartition(" ")[2]
    if len(word) > WHOLE_WORD_LENGTH:  # "Token abcdef" may be repeated without its scheme
        yield word


def _iter_spellings(secret: str, limit: int = sys.maxsize) -> Iterator[str]:
    """Yield a secret as it is, and as JSON (Python's and Go's), HTML and URLs spell it.

    Of longer spellings at least the first ``limit`` characters are yielded.
    """
    # The spelling in a text that was put on one line: of so many words that they are long enough.
    joined = " ".join(secret.split(maxsplit=min(limit, len(secret))))
    yield joined
    if not (start := joined[: 2 * limit + 1]).isprintable():
        yield one_line(start, len(start))
    secret = secret[: limit + 1]
    if _PLAIN.fullmatch(secret):
        yield secret
        return
    quoted = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    yield from (secret, quoted, plain, html.escape(secret), quote(secret, safe=""))
    for sign in "<>&":
        plain = plain.replace(sign, f"\\u{ord(sign):04x}")
    yield plain


def _spelling_pattern(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) > WHOLE_WORD_LENGTH else rf"(?<!\w){escaped}(?!\w)"


# -- words that look like secrets ---------------------------------------------------------------

MAX_DIAGNOSTIC_LENGTH = 200
"""Characters shown of a plugin's diagnostics."""

MAX_SCANNED_LENGTH = 400
"""Characters that are searched for secrets, because the search takes quadratic time."""

_STATE_WORDS = r"""(?: not | no | now | already | expired | invalid | incorrect | wrong | missing
    | empty | required | refused | rejected | revoked | unknown | malformed | unset ) \b"""
"""Words after the name of a secret that are not the secret: ``the token is expired``."""

_NAMED_SECRET = re.compile(
    rf"""(?ix) ( (?: secret | token | passw\w* | passcode | passphrase | pwd | \w*key | bearer
        | basic | credential\w* )
    ["']? (?: \s* [=:] \s*
          | (?: \s+ (?: for | of ) \s .{{1,100}}? | \s* [(\[] [^)\]]{{0,64}} [)\]] )
            \s* (?: = \s* | : (?! // ) \s* )
          | \s+ (?: is | was ) (?: \s* [=:] \s* | \s+ ) (?! {_STATE_WORDS} )
          | \s+ (?! (?: is | was | has | not | file | expired | from | for ) \b ) ) )
    [^\s,;]+ (?: (?<= [:=] ) \s+ [^\s,;]+ )?"""
)
"""The name of a secret and the secret: ``token=...``, ``password is ...``, ``Bearer ...``, and the
prompt ``Password for bob: ...``. A word that ends with a colon is hidden with the next one."""

_CODE = re.compile(
    r"""(?ix) ( \w*assertion ["']? \s* [=:] \s* | \b (?: code | pin | otp ) = ) [^\s,;&]+
    | ( \b (?: code | pin | otp ) ["']? (?: \s* [=:] \s* | \s+ (?: is \s+ )? ) ) \d[\w-]{3,}"""
)
"""The name of a code and the code. A status code has three digits, an exit code fewer."""

_USER_INFO = re.compile(r"(?<=://)[^/\s]+@")
"""The user and the password of a URL."""

_OPAQUE_TOKEN = re.compile(r"(?=[^\s/:.]*\d)(?=[^\s/:.]*[a-zA-Z])[\w+/=~-]{16,}(?:\.[\w+/=~-]+)*")
"""A long word of letters and digits, such as a token. The parts of a path or a host are shorter, or
follow a dot, slash or colon."""


def redact_diagnostics(text: str) -> str:
    """Return one short line of diagnostics without the words that look like secrets."""
    line = one_line(text, len(text))
    if len(line) > MAX_SCANNED_LENGTH:  # whole words, because a cut secret would not look like one
        line = line[:MAX_SCANNED_LENGTH].rpartition(" ")[0]
    line = _USER_INFO.sub(f"{REDACTED}@", line)
    line = _CODE.sub(lambda found: f"{found[1] or found[2]}{REDACTED}", line)
    line = _OPAQUE_TOKEN.sub(REDACTED, _NAMED_SECRET.sub(rf"\1{REDACTED}", line))
    return line if len(line) <= MAX_DIAGNOSTIC_LENGTH else f"{line[:MAX_DIAGNOSTIC_LENGTH]}…"
