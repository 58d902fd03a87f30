"""Messages on stderr: what the process logs while a command runs."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aioinformer.testing import ApiServerThread
from tests.cli.commands import CommandLine, RunningCommand

LOG = logging.getLogger("aioinformer.tests")


@contextmanager
def watching(cli: CommandLine, server: ApiServerThread, *options: str) -> Generator[RunningCommand]:
    server.cluster.create("pods", {"metadata": {"name": "a"}})
    with cli.started("watch", "pods", "-o", "name", *options) as run:
        assert run.read_line() == "pod/a\n"
        yield run


def log_an_exception(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        LOG.exception("handler raised at %s", text)


def test_a_warning_is_a_line_and_its_exception_too(
    server: ApiServerThread, cli: CommandLine
) -> None:
    with watching(cli, server) as run:
        LOG.info("nothing")
        LOG.warning("pods: %s", "late")
        log_an_exception("boom")
        assert run.interrupt()[2] == (
            "aioinformer: pods: late\naioinformer: handler raised at boom: ValueError: boom\n"
        )


def test_a_warning_that_is_repeated_within_ten_seconds_is_shown_once(
    server: ApiServerThread, cli: CommandLine
) -> None:
    with watching(cli, server) as run:
        for text, seconds in (
            ("a", 0),
            ("a", 0.1),
            ("b", 0.2),
            ("a", 0.3),
            ("a", 0.9),
            ("a", 10.4),
        ):
            record = logging.makeLogRecord({"msg": text, "levelno": 30, "created": 100 + seconds})
            logging.getLogger().handle(record)
        said = run.interrupt()[2]

    assert "".join(said.split("aioinformer: ")) == "a\nb\na\na\n"


def test_verbose_shows_everything_with_tracebacks(
    server: ApiServerThread, cli: CommandLine
) -> None:
    with watching(cli, server, "-v") as run:
        LOG.debug("next step")
        log_an_exception("boom")
        run.err.read_until(" DEBUG aioinformer.tests: next step\n")
        run.err.read_until(" ERROR aioinformer.tests: handler raised at boom\n")
        run.err.read_until("    Traceback (most recent call last):\n")


@pytest.mark.parametrize("options", [(), ("-v",)], ids=str)
def test_no_record_can_forge_another_one_or_control_the_terminal(
    options: tuple[str, ...], server: ApiServerThread, cli: CommandLine
) -> None:
    forged = "a\n12:00:00.000 ERROR forged\r\x1b[31m\u2028\u202e\x00"
    with watching(cli, server, *options) as run:
        LOG.warning("bad: %s", forged)
        log_an_exception(forged)
        lines = run.interrupt()[2].removesuffix("\n").split("\n")

    assert all(line.isprintable() for line in lines)
    assert sum("ERROR forged" in line for line in lines) >= 2
    assert not any(line.startswith("12:00:00.000 ERROR forged") for line in lines)
    if not options:
        assert len(lines) == 2


def test_a_status_fits_into_one_line(server: ApiServerThread, cli: CommandLine) -> None:
    with cli.in_terminal("health", "pods", columns=20) as run:
        _, out, _ = run.wait()

    assert out.startswith("checking http://127\r\x1b[Kchecking pods\r\x1b[K")


def test_the_logging_configuration_is_restored_afterwards(
    server: ApiServerThread, cli: CommandLine
) -> None:
    root, library = logging.getLogger(), logging.getLogger("aioinformer")
    before = (list(root.handlers), library.level)
    with watching(cli, server, "-v") as run:
        assert library.level == logging.DEBUG
        run.interrupt()

    assert (list(root.handlers), library.level) == before
