"""Draws what is written: objects that come, change, move between selectors and go; one backup.

Writes come in bursts with long pauses. In a quarter of the plans the server goes back to the backup
in the end: late, so that the versions that it gives out anew reach those of before only when there
was time to notice. In half of these it then goes through the same as before with other values: then
one version means two states of one object. In some others the resource isn't served for a while.
"""

from __future__ import annotations

from random import Random
from typing import TypeAlias

from aioinformer.testing.simulation.plan import Backup, Put, Remove, Restore, Serve, Withdraw

__all__ = ["APPS", "BEFORE", "NAMESPACES", "SPAN", "WRITES", "draw_writes"]

WRITES = 500
SPAN = 1200.0
"""Virtual seconds over which things happen: watches last 300 to 600, bookmarks come every 60."""
BEFORE = -1.0
"""The time of what happens before the informers start."""
BURST = 60
NAMESPACES = ("web", "db", "ops")
APPS = ("shop", "blog")
NODES = tuple(f"node-{number}" for number in range(4))
NEVER = 10 * WRITES

_Writing: TypeAlias = Put | Remove | Withdraw | Serve | Backup | Restore


class _Hand:
    """Draws one write after the other. Each of them changes something."""

    def __init__(self, chance: Random, *, touchy: bool) -> None:
        self._chance = chance
        self._pool = chance.choice((8, 30, 90, 150))
        self._nodes = (*NODES, "node-x") if touchy else NODES
        self.there: set[tuple[str, str]] = set()
        """What exists."""
        self.script: list[Put | Remove] = []
        """What to write next, with new values."""

    def write(self, at: float, value: int) -> Put | Remove:
        """The next one."""
        chance = self._chance
        if self.script:
            planned = self.script.pop(0)
            namespace, name, remove = planned.namespace, planned.name, isinstance(planned, Remove)
        else:
            namespace, name = chance.choice(NAMESPACES), f"obj-{chance.randrange(self._pool)}"
            remove = (namespace, name) in self.there and chance.random() < 0.25
            if remove and chance.random() < 0.5:  # and again at once, as another object
                self.script.append(Put(at, namespace, name, "", "", 0))
        if remove:
            self.there.discard((namespace, name))
            return Remove(at, namespace, name)
        self.there.add((namespace, name))
        app, node = chance.choice(APPS), chance.choice(self._nodes)
        return Put(at, namespace, name, app, node, value)


def draw_writes(chance: Random, *, touchy: bool) -> list[_Writing]:
    """Writes in the order of their making, and what they go back to.

    Args:
        chance: decides everything.
        touchy: whether some objects are on a node that an index function refuses.
    """
    hand = _Hand(chance, touchy=touchy)
    writes: list[_Writing] = []
    at = chance.choice((BEFORE, BEFORE, 0.0))
    backup, restore, again = _draw_rewind(chance)
    withdraw = chance.randrange(50, 450) if backup == NEVER and chance.random() < 0.25 else NEVER
    kept: set[tuple[str, str]] = set()
    while len(writes) < WRITES + 2:
        for _ in range(chance.randrange(1, BURST)):
            writes.append(hand.write(at, len(writes)))
            at += chance.choice((0.0, 0.0, 0.0001, 0.003, 0.2)) if at > 0 else 0.0
            if len(writes) == backup:
                writes.append(Backup(at))
                kept = set(hand.there)
        at = max(at, 0.0) + chance.uniform(0, SPAN / 8)
        if len(writes) >= restore:
            since = writes[backup + 1 :] if again else []
            hand.script = [each for each in since if isinstance(each, Put | Remove)]
            hand.there, restore = kept, NEVER
            writes.append(Restore(at))
        if len(writes) >= withdraw:
            writes += Withdraw(at), Serve(at + (absent := chance.choice((1.0, 8.0, 60.0))))
            hand.there, at, withdraw = set(), at + absent + chance.choice((0.0, 30.0)), NEVER
    return writes


def _draw_rewind(chance: Random) -> tuple[int, int, bool]:
    """After how many writes a backup is made, after how many it is brought back, and whether all
    happens again then.
    """
    if chance.random() < 0.75:
        return NEVER, NEVER, False
    return chance.randrange(20, 150), chance.randrange(300, 480), chance.random() < 0.5
