"""The demo, most of it on a clock that passes while nothing happens."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.commands import CommandLine
from tests.cli.processes import environment, started_in_terminal
from tests.client.accelerated_time import AcceleratedLoop

SHOW, HIDE = "\x1b[?25h", "\x1b[?25l"


@pytest.fixture
def _faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass while neither the informer nor its server has anything to do."""
    monkeypatch.setattr(asyncio.events, "new_event_loop", lambda: AcceleratedLoop(200))


@pytest.mark.usefixtures("_faster")
@pytest.mark.parametrize(
    ("seconds", "faults"), [(3, 1), pytest.param(22, 3, marks=pytest.mark.clients)]
)
def test_without_a_terminal_the_demo_writes_a_line_a_second_and_a_verdict(
    seconds: int, faults: int, cli: CommandLine
) -> None:
    code, out, _ = cli.run("demo", "--seconds", f"{seconds}", "--objects", "60")

    lines = out.splitlines()
    assert code == 0
    assert re.fullmatch(r"server: http://127\.0\.0\.1:\d+", lines[0]), "for another terminal"
    times = [float(line[:7]) for line in lines[1:-3]]
    assert [round(at) for at in times] == [*range(seconds), seconds]
    assert " events delivered: " in lines[-3]
    assert lines[-2] == f"{faults} interruption{'s' * (faults > 1)}, {faults} recovered from"
    assert lines[-1].startswith("cache equals the server: ")
    assert "\x1b" not in out


@pytest.mark.usefixtures("_faster")
def test_in_a_terminal_the_demo_repaints_in_place_and_restores_the_cursor(cli: CommandLine) -> None:
    with cli.in_terminal("demo", "--seconds", "2", "--objects", "30", "-v") as run:
        code, out, _ = run.wait()

    assert code == 0
    assert out.index(HIDE) < out.index("BY NAMESPACE") < out.rindex(SHOW)
    assert out.rindex(HIDE) < out.rindex(SHOW)
    assert out.count("\x1b[22A") >= 5, "23 of 24 lines are painted again and again"
    assert "connections dropped" in out, "it was interrupted once"
    above = out[out.index("BY NAMESPACE") : out.rindex(SHOW)]
    assert " WARNING aioinformer.reflector: pods: ConnectionLost: " in above
    assert "cache equals the server: " in out[out.rindex(SHOW) :]


@pytest.mark.usefixtures("_faster")
@pytest.mark.parametrize(
    ("columns", "lines", "encoding", "rule"),
    [
        (80, 24, "utf-8", "───"),
        (80, 24, "ascii", "---"),
        (40, 13, "utf-8", "─"),
        (2, 2, "ascii", ""),
    ],
)
def test_a_picture_never_is_larger_than_the_terminal(
    columns: int, lines: int, encoding: str, rule: str, cli: CommandLine
) -> None:
    argv = ("demo", "--seconds", "0.5", "--objects", "30")
    with cli.in_terminal(*argv, columns=columns, lines=lines, encoding=encoding) as run:
        _, out, _ = run.wait()

    pictures = out[: out.rindex(SHOW)].split(HIDE)[1:]
    assert len(pictures) >= 3
    for picture in pictures:
        rows = re.sub(r"\x1b\[[\d?]*[A-Za-z]|\r", "", picture).split("\n")
        assert len(rows) < lines
        assert all(len(row) < columns for row in rows)
        assert rule in picture
        assert "?" not in picture.replace("\x1b[?", "")


@pytest.mark.usefixtures("_faster")
def test_a_signal_leaves_the_summary(cli: CommandLine) -> None:
    with cli.started("demo", "--seconds", "0", "--objects", "30") as run:
        run.read_line()
        run.read_line()
        code, out, _ = run.interrupt()

    events, interruptions, verdict = out.splitlines()[-3:]
    assert code == 128 + signal.SIGINT
    assert " events delivered: " in events
    assert interruptions.endswith(" recovered from")
    assert verdict == "interrupted: the cache was not compared with the server"


@pytest.mark.usefixtures("_faster")
def test_a_change_of_the_terminal_size_repaints_everything(cli: CommandLine) -> None:
    with cli.in_terminal("demo", "--seconds", "0", "--objects", "30") as run:
        assert "\x1b[2J" not in run.out.read_until("BY NODE")
        run.out.resize(100, 30)
        run.out.read_until("\x1b[?25l\x1b[H\x1b[2J\r\x1b[K")
        assert run.out.read_until("\x1b[J").count("\n") == 28
        assert SHOW in run.interrupt()[1]


@pytest.mark.usefixtures("_faster")
def test_a_signal_ends_a_demo_whose_reader_pauses(cli: CommandLine) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    with cli.started("demo", "--objects", "1", "-v", stdout=writing) as run:
        run.err.read_until("listed")
        assert run.interrupt()[:2] == (130, "")
    os.close(writing)
    os.close(reading)


async def test_control_c_ends_the_demo_with_130_and_restores_the_cursor(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"NO_COLOR": "1"}
    async with started_in_terminal("demo", "--seconds", "0", env=env, columns=100, lines=30) as run:
        await run.wait_for_text("BY NODE")
        run.type_keys(b"\x03")
        code, out = await run.wait()

    assert code == 130
    assert out.rindex(HIDE) < out.rindex(SHOW)
    assert "Traceback" not in out
    assert "\x1b[32m" not in out, "NO_COLOR"
    assert out.rindex(SHOW) < out.index(" events delivered: ") < out.index("interrupted: ")
