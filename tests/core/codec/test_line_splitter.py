"""Lines of a watch that are short, and a line that is too long.

The other tests of the splitter stand beside those of the decoder, in ``test_event_decoder``.
"""

from __future__ import annotations

import pytest

from aioinformer._core.codec.line_splitter import LineSplitter
from aioinformer.errors import LineTooLong


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
