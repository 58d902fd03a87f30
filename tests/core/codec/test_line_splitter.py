"""The lines of a watch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.codec.line_splitter import LineSplitter
from aioinformer.errors import LineTooLong
from tests.core import strategies


def test_lines_end_at_newlines() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"one\ntwo\nthr") == [b"one\n", b"two\n"]
    assert splitter.feed(b"ee\n") == [b"three\n"]
    assert splitter.buffered == 0


def test_a_whole_line_in_a_chunk_is_not_copied() -> None:
    """The server flushes each event by itself; this is the hot path."""
    chunk = b'{"type":"ADDED"}\n'

    assert LineSplitter().feed(chunk)[0] is chunk


def test_the_lines_of_a_chunk_are_not_copied_but_for_one_that_began_before() -> None:
    splitter = LineSplitter()
    first, second = b"one\ntwo\nthr", b"ee\nfour\n"

    assert splitter.find_lines(first) == [(first, 0, 4), (first, 4, 8)]
    assert splitter.find_lines(second) == [(b"three\n", 0, 6), (second, 3, 8)]


@given(st.data())
def test_empty_lines_with_any_line_end_are_left_out_in_any_chunks(
    data: st.DataObject,
) -> None:
    """A proxy's blank line must not cost a relist."""
    lines = data.draw(st.lists(st.sampled_from([b"\n", b"\r\n", b"{}\n", b"{}\r\n"]), max_size=8))
    stream = b"".join(lines)
    size = data.draw(st.sampled_from([1, 2, 3, 100]))
    splitter = LineSplitter()

    found = [
        line
        for start in range(0, len(stream), size)
        for line in splitter.feed(stream[start : start + size])
    ]

    assert found == [line for line in lines if line.strip()]


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
@settings(deadline=None)
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    splitter = LineSplitter()
    whole = b"".join(each + b"\n" for each in lines) + b"tail"

    got = [each for piece in data.draw(strategies.chunks(whole)) for each in splitter.feed(piece)]

    assert [each.removesuffix(b"\n") for each in got] == [
        each for each in lines if each not in (b"", b"\r")
    ]
    assert splitter.buffered == len(b"tail")


@pytest.mark.parametrize("separator", ["\u0085", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_newline_ends_a_line(separator: str) -> None:
    text = f"one{separator}two".encode()

    assert LineSplitter().feed(text + b"\nx") == [text + b"\n"]


def test_the_pending_bytes_are_those_of_the_incomplete_line() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntw")
    assert splitter.buffered == 2
    splitter.feed(b"o")
    assert splitter.buffered == 3
    assert repr(splitter) == "<LineSplitter pending=3 B>"


def test_the_cap_is_for_one_line_and_not_for_all_of_them() -> None:
    splitter = LineSplitter(cap=10)

    for _ in range(100):
        assert splitter.feed(b"12345678") == []
        assert splitter.feed(b"9\n") == [b"123456789\n"]


def test_an_incomplete_line_behind_another_one_has_the_size_limit() -> None:
    with pytest.raises(LineTooLong):
        LineSplitter(cap=10).feed(b"one\n" + b"x" * 11)


def test_a_line_of_megabytes_in_small_chunks_takes_time_in_proportion() -> None:
    """A splitter that joined at every chunk would copy 200 GB here."""
    text = b"x" * (20 * 1024 * 1024)
    splitter = LineSplitter()
    for at in range(0, len(text), 1024):
        assert splitter.feed(text[at : at + 1024]) == []

    assert splitter.feed(b"\n") == [text + b"\n"]


@pytest.mark.parametrize("line", [b"1\n", b"{}\n", b"1\r\n"])
def test_a_short_line_with_content_is_a_line(line: bytes) -> None:
    assert LineSplitter().feed(line) == [line]
    assert LineSplitter().feed(line + line) == [line, line]


def test_the_error_of_a_line_that_is_too_long_names_the_limit_and_the_option() -> None:
    splitter = LineSplitter(cap=10)
    assert splitter.feed(b"0123456789") == []

    with pytest.raises(LineTooLong) as caught:
        splitter.feed(b"0")

    assert str(caught.value) == (
        "a watch event is longer than 10 bytes; if the cluster has objects of this size, raise"
        " line_cap"
    )
    assert caught.value.phase == "watch"


def test_a_whole_line_in_a_second_chunk_is_not_copied() -> None:
    splitter, chunk = LineSplitter(), b"two\n"
    splitter.find_lines(b"one\n")

    ((source, start, end),) = splitter.find_lines(chunk)
    assert source is chunk
    assert (start, end) == (0, 4)
