"""The answers of the subresources ``scale`` and ``log``."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._client.api.subresource_answers import Scale, decode_scale, split_lines
from aioinformer.errors import ProtocolError
from aioinformer.testing.simulation import run


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def lines_of(*chunks: bytes) -> list[str]:
    return [line async for line in split_lines(stream(*chunks))]


def test_a_scale_without_a_status_has_no_pods_and_no_selector() -> None:
    full = (
        b'{"kind":"Scale","metadata":{"resourceVersion":"7"},"spec":{"replicas":3},'
        b'"status":{"replicas":2,"selector":"app=web"}}'
    )

    assert decode_scale(full) == Scale(3, 2, "app=web", "7")
    assert decode_scale(b'{"kind":"Scale","metadata":{}}') == Scale(0, 0, "", "")


@pytest.mark.parametrize(
    ("body", "mistake"),
    [
        (b"<html>password</html>", "DecodeError"),
        (b'{"metadata":{}}', "ValidationError"),
        (b'{"kind":"Scale","metadata":{},"spec":{"replicas":"password"}}', "ValidationError"),
        (b'{"kind":"\xff","metadata":{}}', "DecodeError"),
        (b'{"x":' + b"[" * 50_000, "RecursionError"),
    ],
    ids=["page", "empty", "password", "no UTF-8", "deep"],
)
def test_an_answer_that_is_no_scale_is_described_without_its_content(
    body: bytes, mistake: str
) -> None:
    with pytest.raises(ProtocolError, match="no Scale") as caught:
        decode_scale(body)

    assert mistake in str(caught.value)
    assert f"{len(body)} bytes" in str(caught.value)
    assert "password" not in str(caught.value)
    assert caught.value.phase == "write"
    assert caught.value.__cause__ is None


async def test_lines_are_yielded_as_they_are_completed() -> None:
    lines = split_lines(stream(b"one\ntw", b"", b"o\n\nth", b"ree"))

    assert [line async for line in lines] == ["one", "two", "", "three"]
    assert await lines_of() == []
    assert await lines_of(b"\n") == [""]


async def test_a_byte_that_is_no_text_does_not_end_the_log() -> None:
    assert await lines_of(b"a\xff\nb") == ["a\ufffd", "b"]
    assert await lines_of("ä".encode()[:1], "ä".encode()[1:] + b"\n") == ["ä"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"))), st.data())
def test_the_lines_do_not_depend_on_the_chunks(texts: list[str], data: st.DataObject) -> None:
    body = "".join(f"{text}\n" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]

    assert run(lines_of(*chunks), seed=1) == texts
