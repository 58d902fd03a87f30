"""Messages on stderr."""

from __future__ import annotations

import io
import logging

import pytest

from aioinformer._cli.terminal.messages import Messages


class Tty(io.StringIO):
    """A terminal, as far as one can write to it."""

    def isatty(self) -> bool:
        return True


def test_a_notice_is_one_line_that_begins_with_the_name_of_the_program() -> None:
    stream = io.StringIO()
    Messages(stream).show("no such\nthing\x1b[2J")

    assert stream.getvalue() == "aioinformer: no such thing\ufffd[2J\n"


def test_a_status_is_shown_in_terminals_only() -> None:
    stream = io.StringIO()
    messages = Messages(stream)
    messages.show_status("waiting")
    messages.show("b")

    assert stream.getvalue() == "aioinformer: b\n"


def test_a_status_is_painted_over_and_stays_below_notices() -> None:
    stream = Tty()
    messages = Messages(stream)
    messages.show_status("waiting 1")
    messages.show_status("waiting 2")
    messages.show("b")
    messages.show_status("")
    messages.show("c")

    erase = "\r\x1b[K"
    assert stream.getvalue() == (
        f"waiting 1{erase}waiting 2{erase}aioinformer: b\nwaiting 2{erase}aioinformer: c\n"
    )


def test_a_status_fits_into_one_line() -> None:
    stream = Tty()
    Messages(stream).show_status("x" * 1000)

    assert len(stream.getvalue()) < 1000


def test_diverted_notices_go_to_the_listener_until_the_end() -> None:
    stream, received = io.StringIO(), list[str]()
    messages = Messages(stream)
    with messages.redirect(received.append):
        messages.show("a")
        messages.show_record("b")
    messages.show("c")

    assert received == ["a", "b"]
    assert stream.getvalue() == "aioinformer: c\n"


def test_a_warning_is_a_line_and_its_exception_too() -> None:
    stream, log = io.StringIO(), logging.getLogger("aioinformer.tests")
    with Messages(stream).handle_logging(verbose=False):
        log.info("nothing")
        log.warning("pods: %s", "late")
        try:
            raise ValueError("boom")
        except ValueError:
            log.exception("handler raised")

    assert stream.getvalue() == (
        "aioinformer: pods: late\naioinformer: handler raised: ValueError: boom\n"
    )


def test_a_warning_that_is_repeated_within_a_second_is_shown_once() -> None:
    stream = io.StringIO()
    with Messages(stream).handle_logging(verbose=False):
        for text, seconds in (
            ("a", 0.0),
            ("a", 0.1),
            ("b", 0.2),
            ("a", 0.3),
            ("a", 0.9),
            ("a", 10.4),
        ):
            record = logging.makeLogRecord({"msg": text, "levelno": 30, "created": 100 + seconds})
            logging.getLogger().handle(record)

    assert "".join(stream.getvalue().split("aioinformer: ")) == "a\nb\na\na\n"


def test_verbose_shows_everything_with_tracebacks() -> None:
    stream, log = io.StringIO(), logging.getLogger("aioinformer.tests")
    with Messages(stream).handle_logging(verbose=True):
        log.debug("next step")
        try:
            raise ValueError("boom")
        except ValueError:
            log.exception("handler raised")

    first, second, *rest = stream.getvalue().splitlines()
    assert first.endswith(" DEBUG aioinformer.tests: next step")
    assert second.endswith(" ERROR aioinformer.tests: handler raised")
    assert rest[0] == "    Traceback (most recent call last):"


@pytest.mark.parametrize("verbose", [False, True])
def test_no_record_can_forge_another_one_or_control_the_terminal(verbose: bool) -> None:
    stream, log = io.StringIO(), logging.getLogger("aioinformer.tests")
    forged = "a\n12:00:00.000 ERROR forged\r\x1b[31m\u2028\u202e\x00"
    with Messages(stream).handle_logging(verbose=verbose):
        log.warning("bad: %s", forged)
        try:
            raise ValueError(forged)
        except ValueError:
            log.exception("handler raised at %s", forged)

    lines = stream.getvalue().removesuffix("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("12:00:00.000 ERROR forged") for line in lines)
    assert sum(not line.startswith("    ") for line in lines) == 2


def test_the_logging_configuration_is_restored_afterwards() -> None:
    root, library = logging.getLogger(), logging.getLogger("aioinformer")
    before = (list(root.handlers), library.level)
    with Messages(io.StringIO()).handle_logging(verbose=True):
        assert library.level == logging.DEBUG

    assert (list(root.handlers), library.level) == before


def test_a_message_to_a_closed_stream_causes_no_error() -> None:
    stream = io.StringIO()
    messages = Messages(stream)
    stream.close()

    messages.show("nobody hears this")
