"""What the real server answered to writes: ``recordings/writes.jsonl``, by what they are for.

One line a write, in the order in which they were sent, with what chance has a part in set aside
(``tests/apiserver/server_pair``). The test of the same writes on the real server keeps it true.
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
    """All of them, by what they are for."""
    found: dict[str, list[RecordedWrite]] = {}
    for line in RECORDED_PATH.read_bytes().splitlines():
        read = msgspec.json.decode(line, type=_RecordedLine)
        found.setdefault(read.what, []).append(read.answer)
    return found
