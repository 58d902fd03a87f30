"""Redaction of the values of headers."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp.http_exceptions import BadStatusLine
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._client.auth.redaction import (
    FEW_SECRETS,
    MAX_DEPTH,
    MAX_DIAGNOSTIC_LENGTH,
    MAX_SCANNED_LENGTH,
    REDACTED,
    Redactor,
    redact_diagnostics,
)
from aioinformer._client.http.request import ApiRequest
from aioinformer._client.http.secret_errors import run_redaction, secret_values
from aioinformer.errors import Expired, Status

secrets = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=6, max_size=30)


@given(secrets, st.text(), st.text())
def test_a_value_is_hidden_at_each_position(secret: str, before: str, after: str) -> None:
    masked = Redactor([("X-Api-Key", secret)]).redact_complete(before + secret + after)

    assert secret not in masked.replace(REDACTED, " ")
    assert REDACTED in masked


def as_it_is(text: str) -> str:
    return text


def as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def as_url(text: str) -> str:
    return quote(text, safe="")


@pytest.mark.parametrize(
    "spell",
    [as_it_is, as_json, html.escape, as_url],
    ids=["plain", "JSON", "HTML", "URL"],
)
def test_a_value_is_hidden_in_every_spelling(spell: Callable[[str], str]) -> None:
    secret = 'a"b<c>&/é+\\=x'

    assert Redactor([("X-Api-Key", secret)]).redact_complete(spell(secret)) == REDACTED


class EverySpelling:
    """The redaction by one regular expression of every spelling, which takes seconds for many."""

    def __init__(self, values: list[str]) -> None:
        found = {each for value in values for each in self.spell(value)}
        self.spellings = sorted(found, key=len, reverse=True)
        patterns = [
            re.escape(each) if len(each) > 5 else rf"(?<!\w){re.escape(each)}(?!\w)"
            for each in self.spellings
        ]
        self.pattern = re.compile("|".join(patterns))

    def spell(self, value: str) -> Iterator[str]:
        word = value.strip().rpartition(" ")[2]
        for each in (value.strip(), word if len(word) > 5 else value.strip()):
            plain = json.dumps(each, ensure_ascii=False)[1:-1]
            yield from (" ".join(each.split()), each, plain)
            yield from (as_json(each), as_url(each), html.escape(each))
            for sign in "<>&":
                plain = plain.replace(sign, f"\\u{ord(sign):04x}")
            yield plain

    def redact_complete(self, text: str) -> str:
        return self.pattern.sub(REDACTED, text)

    def redact_prefix(self, text: str) -> str:
        redacted = self.redact_complete(text).rstrip("\ufffd")
        for start in range(len(redacted)):
            if any(each.startswith(redacted[start:]) for each in self.spellings):
                return redacted[:start]
        return redacted


words = st.one_of(
    st.text('ab1-"<&\\\n\t é中%/+ 😀', min_size=1, max_size=12),
    st.text("ab1", min_size=5, max_size=9),
).filter(str.strip)


MANY = tuple(f"other-{number}" for number in range(FEW_SECRETS))


@given(st.lists(words, min_size=1, max_size=5), st.data())
def test_the_search_hides_what_a_regular_expression_of_every_spelling_hides(
    values: list[str], data: st.DataObject
) -> None:
    values = [*values, *data.draw(st.sampled_from([(), MANY]))]
    reference, redactor = EverySpelling(values), Redactor([("X", each) for each in values])
    pieces = st.one_of(st.sampled_from(reference.spellings), words)
    text = "".join(data.draw(st.lists(pieces, max_size=5)))
    text = text[: data.draw(st.integers(0, len(text)))]

    assert redactor.redact_complete(text) == reference.redact_complete(text)
    assert redactor.redact_prefix(text) == reference.redact_prefix(text)


@pytest.mark.parametrize(
    ("headers", "text", "shown"),
    [
        ({"X": "abc<d>&"}, r"abc\u003cd\u003e\u0026", REDACTED),  # as Go writes signs of HTML
        *(
            ({name: "Bearer ab"}, "Bearer ab, about", f"Bearer {REDACTED}, about")
            for name in ("Authorization", "authorization", "Proxy-Authorization")
        ),
        ({"Authorization": "abcdefg"}, "got abcdefg", f"got {REDACTED}"),
        ({"X": "Token abcdef"}, "abcdef; Token abcdef", f"{REDACTED}; {REDACTED}"),
        ({"X": "1"}, "X: 1, of 112 in v1", f"X: {REDACTED}, of 112 in v1"),
        ({"A": "abcdef", "B": "abcdefgh"}, "abcdefgh", REDACTED),
        ({"X": "two\t  words"}, "sent: two words", f"sent: {REDACTED}"),
        *(
            ({name: "something"}, "something", "something")
            for name in (
                *("Accept", "Accept-Encoding", "User-Agent", "HOST"),
                *("Impersonate-User", "Impersonate-Group", "impersonate-uid"),
            )
        ),
    ],
)
def test_a_value_is_hidden_without_its_scheme_and_only_if_it_is_secret(
    headers: dict[str, str], text: str, shown: str
) -> None:
    assert Redactor(headers.items()).redact_complete(text) == shown


def test_a_redactor_without_values_hides_nothing() -> None:
    for redactor in (Redactor([]), Redactor([("X-Api-Key", "")])):
        assert redactor.redact_complete("a text") == redactor.redact_prefix("a text") == "a text"


@given(secrets, st.data())
def test_a_text_that_is_cut_inside_a_value_ends_before_the_value(
    secret: str, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(secret) - 1))

    redacted = Redactor([("X-Api-Key", secret)]).redact_prefix("\n \n" + secret[:size])

    assert "\n \n".startswith(redacted)


def test_a_value_that_is_cut_inside_a_character_is_hidden() -> None:
    redactor = Redactor([("X-Api-Key", "canaryé")])

    assert redactor.redact_prefix("sent: canaryé"[:-1] + "\ufffd") == "sent: "


def test_every_text_of_a_status_is_redacted() -> None:
    sent = {"x": ["canary", {"canary": "a canary"}], "n": 5}
    redactor = Redactor([("X-Api-Key", "canary")])

    masked = redactor.redact_status(Status(403, "canary", "the canary", sent, 3.0, "token"))

    details = {"x": [REDACTED, {REDACTED: f"a {REDACTED}"}], "n": 5}
    assert masked == Status(403, REDACTED, f"the {REDACTED}", details, 3.0, "token")


@pytest.mark.parametrize("reason", ["Expired", "Gone", "Timeout"])
def test_the_reason_and_the_token_that_decide_the_next_request_are_not_hidden(reason: str) -> None:
    status = Status(504, reason, continue_token=reason)

    assert Redactor([("X-Odd", reason)]).redact_status(status) == status


def test_details_that_are_nested_too_deeply_are_dropped() -> None:
    deep: Any = "canary"
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]

    masked = Redactor([]).redact_status(Status(500, details={"deep": deep}))

    assert "canary" not in repr(masked)


def test_a_text_of_megabytes_is_searched_for_the_secrets_of_a_request_in_milliseconds() -> None:
    redactor = Redactor([("Authorization", "Bearer canary-token"), ("X", "canary")])
    start = time.thread_time()

    masked = redactor.redact_complete(f"{'x-y' * 1_000_000}canary")

    assert time.thread_time() - start < 0.2
    assert masked.endswith(f"x-y{REDACTED}")


def test_a_repr_shows_no_secret() -> None:
    assert "canary" not in repr(Redactor([("X-Api-Key", "canary")]))


def test_a_truncated_text_ends_before_a_part_of_a_secret() -> None:
    redactor = Redactor([("X-Api-Key", "canary")])

    assert redactor.redact("the canary is a cana...") == f"the {REDACTED} is a ..."
    assert redactor.redact("the canary is a cana") == f"the {REDACTED} is a cana"
    assert redactor.redact_status(Status(500, "", "a cana...")).message == "a ..."


def test_an_error_is_redacted_with_its_causes() -> None:
    status = Status(410, "", "the canary", {"x": "canary"})
    error = Expired(status, target="at canary", advice="ask canary")
    error.__cause__ = UnicodeDecodeError("utf-8", b"canary\xff", 6, 7, "bad")
    error.__cause__.__context__ = BadStatusLine("HTTP canary")
    error.__cause__.__context__.__cause__ = error  # a circle is no trouble

    Redactor([("X-Api-Key", "canary")]).redact_error(error)

    cause = error.__cause__
    assert isinstance(cause, UnicodeDecodeError)
    context = cause.__context__
    assert "canary" not in repr([error, vars(error), cause, context, vars(context)])
    assert str(error) == f"at {REDACTED}: 410: the {REDACTED}; ask {REDACTED}"
    assert error.status.details == {"x": REDACTED}


# -- what only looks secret --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token=abc", f"token={REDACTED}"),
        ("the password: hunter2, it is", f"the password: {REDACTED}, it is"),
        ("Bearer abc", f"Bearer {REDACTED}"),
        ("got eyJhbGciOiJSUzI1NiIs.eyJpc3MiOi.J9sig here", f"got {REDACTED} here"),
        ("no host sts.eu-west-1.amazonaws.com:443", "no host sts.eu-west-1.amazonaws.com:443"),
        ("the token has expired", "the token has expired"),
        ("the token is expired", "the token is expired"),
        ("the token was revoked", "the token was revoked"),
        ("password is hunter2", f"password is {REDACTED}"),
        ("your secret was: hunter2", f"your secret was: {REDACTED}"),
        ("api_key is=hunter2, and", f"api_key is={REDACTED}, and"),
        ("two\n lines\x1b[0m", "two lines [0m"),
        (
            "401 for https://user:s3cretpw@idp.example.com/token",
            f"401 for https://{REDACTED}@idp.example.com/token",
        ),
        ("at ftp://a:b@c@host:21", f"at ftp://{REDACTED}@host:21"),
        ("see https://idp.example.com/a@b", "see https://idp.example.com/a@b"),
        ("Password for bob: hunter2", f"Password for bob: {REDACTED}"),
        (
            "Password for 'https://bob.example.com': hunter2",
            f"Password for 'https://bob.example.com': {REDACTED}",
        ),
        ("password (bob): hunter2", f"password (bob): {REDACTED}"),
        ("password entered: hunter2", f"password {REDACTED}"),
        ("passcode 123456 wrong", f"passcode {REDACTED} wrong"),
        ("Enter PIN: 1234", f"Enter PIN: {REDACTED}"),
        ("your code is 123456", f"your code is {REDACTED}"),
        ("at https://idp/cb?code=abc.def", f"at https://idp/cb?code={REDACTED}"),
        ("exit code 3, status code: 401", "exit code 3, status code: 401"),
        ("rpc error: code = Unavailable", "rpc error: code = Unavailable"),
        ("assertion=foo.bar.baz", f"assertion={REDACTED}"),
        ("client_assertion: foo.bar.baz", f"client_assertion: {REDACTED}"),
        ("assertion failed: no clock", "assertion failed: no clock"),
    ],
)
def test_values_that_look_like_secrets_are_hidden_in_a_line(text: str, shown: str) -> None:
    assert redact_diagnostics(text) == shown


def test_a_long_line_is_cut_off_between_words() -> None:
    secret = "a1" * 50

    assert len(redact_diagnostics("word " * 1000)) == MAX_DIAGNOSTIC_LENGTH + 1
    cut = redact_diagnostics("x" * (MAX_SCANNED_LENGTH - 20) + " " + secret)
    assert "a1" not in cut
    assert redact_diagnostics("9z" * 5000) == ""


# -- the values of a Secret --------------------------------------------------------------------

POD = "/api/v1/namespaces/web/pods/web-0"
SECRET = "/api/v1/namespaces/web/secrets/token"
LONG = "hunter2 and more\nof it on a second line"
"""With what JSON, HTML and URLs each spell in a way of their own."""


def sent(body: object, path: str = SECRET) -> ApiRequest:
    return ApiRequest("write", path, method="PUT", body=json.dumps(body).encode())


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "Secret", "stringData": {"p": LONG}},
        {"data": {"p": base64.b64encode(LONG.encode()).decode()}},
        [{"op": "add", "path": "/stringData/p", "value": LONG}],
        [{"op": "add", "path": "/stringData", "value": {"p": [LONG]}}],
    ],
    ids=["stringData", "data", "operation", "operation-on-all"],
)
def test_values_are_hidden_in_every_form_in_which_a_server_may_repeat_them(body: object) -> None:
    redactor = Redactor(secret_values(sent(body)))
    for value in (LONG, base64.b64encode(LONG.encode()).decode(), json.dumps(LONG)):
        assert "hunter2" not in redactor.redact_complete(f"it is weak: {value}")
        assert base64.b64encode(b"hunter2 and").decode()[:12] not in redactor.redact_complete(value)


def test_values_outside_a_secret_are_not_hidden() -> None:
    body = {"kind": "Secret", "type": "Opaque", "metadata": {"name": "token"}, "immutable": True}
    assert not list(secret_values(sent(body)))
    assert not list(secret_values(sent({"data": {"p": LONG}}, POD)))
    assert not list(secret_values(ApiRequest("write", SECRET, method="DELETE")))


async def test_a_cancelled_request_ends_when_its_error_is_redacted() -> None:
    started, go_on, redacted = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def redact() -> None:
        loop.call_soon_threadsafe(started.set)
        go_on.wait(10)
        redacted.append("redacted")

    request = sent({"stringData": {"a": "x" * 100_000}})
    task = asyncio.create_task(run_redaction(request, redact))
    await started.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert redacted == ["redacted"]
