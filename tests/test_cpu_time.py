"""Measured stalls of a process, and times without them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

PROGRAM = """
import sys
from time import monotonic
from tests.cpu_time import StallMeter, Stopwatch

meter = StallMeter()
meter.start()
start, watch = monotonic(), Stopwatch(meter)
print("started", flush=True)
sys.stdin.readline()
print(meter.seconds, monotonic() - start - watch.seconds)
"""


def test_the_time_in_which_a_process_is_stopped_is_a_stall_and_no_measured_time() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate("\n")

    stalled, not_measured = map(float, output.split())
    assert stalled > 0.8
    assert not_measured > 0.8
