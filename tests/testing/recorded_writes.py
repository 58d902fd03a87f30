"""Answers of the real server to writes, from ``recordings/writes.jsonl``.

Each line is one write, in the order of sending, with normalized answers
(``tests/apiserver/fidelity/server_pair``). A test that sends the same writes to a real server keeps
the file true.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

RECORDED_PATH = Path(__file__).parent.parent / "recordings" / "writes.jsonl"


class RecordedWrite(NamedTuple):
    """A write, and its answer."""

    method: str
    path: str
    body: str
    kind: str
    status: int
    answer: str


class _RecordedLine(msgspec.Struct):
    what: str
    answer: RecordedWrite


def read_recorded_writes() -> dict[str, list[RecordedWrite]]:
    """Return the recorded writes by series, such as ``a merge patch``."""
    found: dict[str, list[RecordedWrite]] = {}
    for line in RECORDED_PATH.read_bytes().splitlines():
        read = msgspec.json.decode(line, type=_RecordedLine)
        found.setdefault(read.what, []).append(read.answer)
    return found
