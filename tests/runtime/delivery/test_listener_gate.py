"""Where the pump waits for listeners that stop it."""

from __future__ import annotations

import asyncio

from aioinformer._runtime.delivery.listener import Gate
from tests.runtime.sources import settle


def shut(gate: Gate) -> bool:
    return gate.closed


async def test_a_gate_is_closed_while_somebody_waits_at_it() -> None:
    gate = Gate()
    assert not shut(gate)
    waiting = asyncio.create_task(gate.wait())
    await settle()
    assert shut(gate)

    gate.open()
    await waiting

    assert not shut(gate)


async def test_whoever_waits_at_a_gate_goes_on_together() -> None:
    gate = Gate()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(2)]
    await settle()
    assert repr(gate) == "<Gate closed>"
    gate.open()
    await asyncio.gather(*waiting)

    assert repr(gate) == "<Gate open>"
