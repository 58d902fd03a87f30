"""Where the pump waits for listeners that stop it."""

from __future__ import annotations

import asyncio

from aioinformer._runtime.delivery.listener import BackpressureGate
from tests.runtime.scripted_source import yield_to_loop


def shut(gate: BackpressureGate) -> bool:
    return gate.closed


async def test_a_gate_is_closed_while_somebody_waits_at_it() -> None:
    gate = BackpressureGate()
    assert not shut(gate)
    waiting = asyncio.create_task(gate.wait())
    await yield_to_loop()
    assert shut(gate)

    gate.open()
    await waiting

    assert not shut(gate)


async def test_whoever_waits_at_a_gate_goes_on_together() -> None:
    gate = BackpressureGate()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(2)]
    await yield_to_loop()
    assert repr(gate) == "<BackpressureGate closed>"
    gate.open()
    await asyncio.gather(*waiting)

    assert repr(gate) == "<BackpressureGate open>"
