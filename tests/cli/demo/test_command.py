"""The demo as a process."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from tests.cli.processes import environment, started_cli, started_in_terminal

SECONDS = "5"
"""The length of a demo: the connections are dropped between the second and the fourth second."""

SHOW, HIDE = "\x1b[?25h", "\x1b[?25l"


@pytest.mark.clients
async def test_without_a_terminal_the_demo_writes_a_line_a_second_and_a_verdict(
    tmp_path: Path,
) -> None:
    argv = ("demo", "--seconds", SECONDS, "--objects", "60")
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        code, out, _ = await run.wait()

    lines = out.splitlines()
    assert code == 0
    assert re.fullmatch(r"server: http://127\.0\.0\.1:\d+", lines[0]), "for another terminal"
    times = [float(line[:7]) for line in lines[1:-3]]
    assert len(times) >= 3, "six, unless the machine is busy"
    assert all(at >= number for number, at in enumerate(times[:-1]))
    assert times == sorted(times)
    assert " events delivered: " in lines[-3]
    assert lines[-2] == "1 interruption, 1 recovered from"
    assert lines[-1].startswith("cache equals the server: ")
    assert "\x1b" not in out


@pytest.mark.clients
async def test_in_a_terminal_the_demo_repaints_in_place_and_restores_the_cursor(
    tmp_path: Path,
) -> None:
    argv = ("demo", "--seconds", SECONDS, "--objects", "60")
    async with started_in_terminal(*argv, env=environment(tmp_path)) as run:
        code, out = await run.wait()

    assert code == 0
    assert out.index(HIDE) < out.index("BY NAMESPACE") < out.rindex(SHOW)
    assert out.rindex(HIDE) < out.rindex(SHOW)
    assert out.count("\x1b[22A") >= 5, "23 of 24 lines are painted again and again"
    assert "connections dropped" in out, "it was interrupted once"
    assert "cache equals the server: " in out[out.rindex(SHOW) :]


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


@pytest.mark.clients
async def test_a_signal_leaves_the_summary_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "demo.log"
    with log.open("wb") as file:
        argv = ("demo", "--seconds", "0", "--objects", "60")
        async with started_cli(*argv, env=environment(tmp_path), stdout=file.fileno()) as run:
            for _ in range(1500):
                if log.stat().st_size:
                    break
                await asyncio.sleep(0.01)
            run.send_signal(signal.SIGINT)
            code, _, _ = await run.wait()

    events, interruptions, verdict = log.read_text().splitlines()[-3:]
    assert code == 130
    assert " events delivered: " in events
    assert interruptions.endswith(" recovered from")
    assert verdict == "interrupted: the cache was not compared with the server"
