"""Lines, cut and coloured."""

from __future__ import annotations

import pytest

from aioinformer._cli.terminal.style import (
    StyledText,
    align_columns,
    compact_bytes,
    printable,
    render,
    status_style,
)

LINE = (StyledText("pods ", "bold"), StyledText("watching", "green"))


def test_render_omits_colours_unless_requested() -> None:
    assert render(LINE, 80, colour=False) == "pods watching"


def test_colours_end_with_their_span() -> None:
    assert render(LINE, 80, colour=True) == "\x1b[1mpods \x1b[0m\x1b[32mwatching\x1b[0m"


def test_a_line_is_cut_by_its_visible_width() -> None:
    assert render(LINE, 7, colour=True) == "\x1b[1mpods \x1b[0m\x1b[32mwa\x1b[0m"


def test_a_span_that_does_not_fit_at_all_leaves_no_escape_sequence() -> None:
    assert render(LINE, 5, colour=True) == "\x1b[1mpods \x1b[0m"


def test_a_line_without_colours_is_plain_text() -> None:
    assert render(LINE, colour=False) == "pods watching"


def test_cells_but_the_last_are_padded_to_their_columns() -> None:
    row = align_columns((StyledText("a", "bold"), StyledText("b"), StyledText("c")), [3, 1, 9])
    assert render(row, colour=False) == "a     b   c"


def test_control_characters_and_line_breaks_are_replaced() -> None:
    assert printable("a\nb\x1b[2Jc\x07") == "a b\ufffd[2Jc\ufffd"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_104_000, "1.1 MB"),
        (5_000_000_000_000, "5000.0 GB"),
    ],
)
def test_compact_bytes_formats_a_size_with_a_unit(count: int, text: str) -> None:
    assert compact_bytes(count) == text


@pytest.mark.parametrize(
    ("word", "style"),
    [
        ("Running", "green"),
        ("CrashLoopBackOff", "red"),
        ("ErrImagePull", "red"),
        ("Failed", "red"),
        ("Pending", "yellow"),
        ("Terminating", "yellow"),
        ("Init:0/1", "yellow"),
        ("-", ""),
        ("<none>", ""),
    ],
)
def test_the_style_of_a_status_shows_success_failure_or_neither(word: str, style: str) -> None:
    assert status_style(word) == style
