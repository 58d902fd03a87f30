"""The gate at which the pump waits for full mailboxes."""

from __future__ import annotations

import asyncio

from aioinformer._runtime.delivery.listener import BackpressureGate
from tests.runtime.scripted_source import yield_to_loop


def shut(gate: BackpressureGate) -> bool:
    return gate.closed


async def test_a_gate_is_closed_while_a_task_waits() -> None:
    gate = BackpressureGate()
    assert not shut(gate)
    waiting = asyncio.create_task(gate.wait())
    await yield_to_loop()
    assert shut(gate)

    gate.open()
    await waiting

    assert not shut(gate)


async def test_all_waiting_tasks_pass_an_open_gate() -> None:
    gate = BackpressureGate()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(2)]
    await yield_to_loop()
    assert repr(gate) == "<BackpressureGate closed>"
    gate.open()
    await asyncio.gather(*waiting)

    assert repr(gate) == "<BackpressureGate open>"
