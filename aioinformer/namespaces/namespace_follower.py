"""The namespaces that match a predicate, followed through an informer of namespaces.

A namespace that is deleted and created again is removed and added, and so is read anew.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import NoReturn, Protocol

from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import NotRunning
from aioinformer.namespaces.scoped_source import FollowedNamespaces
from aioinformer.namespaces.state.scopes import Scope

log = logging.getLogger("aioinformer.scopes")

STARTS_PER_TURN = 16
"""Reflectors to start in one turn of the loop. Making a reflector takes 0.1 ms, and its first step,
which follows in the next turn, as long again."""


class StartTurn:
    """The starts of reflectors in one turn of the loop.

    Time slices don't suffice: the tasks of all reflectors that were made in several slices take
    their first step in one turn.
    """

    def __init__(self) -> None:
        self._starts = 0

    async def count_start(self) -> None:
        """Count a start, and yield to the loop after ``STARTS_PER_TURN`` of them."""
        self._starts += 1
        if self._starts % STARTS_PER_TURN == 0:
            await asyncio.sleep(0)


class NamespaceSet(Protocol):
    @property
    def namespaces(self) -> tuple[str, ...]: ...

    def add(self, namespace: str, scope: Scope) -> None: ...

    def remove(self, namespace: str) -> None: ...

    def complete(self) -> None:
        """Record that all namespaces of the first state were added."""


class NamespaceFollower:
    def __init__(self, followed: FollowedNamespaces, scopes: NamespaceSet) -> None:
        self._followed = followed
        self._scopes = scopes
        self._present: dict[str, str] = {}
        """The uids of the namespaces that were added, by name."""

    async def run(self) -> NoReturn:
        # At the end of the factory, the informer of namespaces may end before this task.
        with suppress(NotRunning):
            await self._follow()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("the future is never done")

    async def _follow(self) -> None:
        async with self._followed.informer.snapshot_and_events() as (snapshot, events):
            time_slice, turn = TimeSlice(), StartTurn()
            for namespace in snapshot.values():
                if self._update(namespace):
                    await turn.count_start()
                await time_slice.maybe_yield()
            self._scopes.complete()
            async for event in events:
                if self._apply(event):
                    await turn.count_start()
                await time_slice.maybe_yield()

    def _apply(self, event: Event) -> bool:
        """Apply an event; return True if a namespace was added."""
        if isinstance(event, Deleted):
            self._remove(event.obj.name)
            return False
        return self._update(event.obj)

    def _update(self, namespace: KubeObject) -> bool:
        """Add or remove a namespace as it matches; return True if it was added."""
        name = namespace.name
        if self._present.get(name, namespace.uid) != namespace.uid:
            self._remove(name)  # deleted and created again
        if not self._matches(namespace):
            self._remove(name)
            return False
        if name in self._present:
            return False
        self._present[name] = namespace.uid
        self._scopes.add(name, self._followed.scope)
        log.info("namespace %s matches %r: added", name, self._followed.predicate)
        return True

    def _remove(self, name: str) -> None:
        if self._present.pop(name, None) is not None:
            self._scopes.remove(name)
            log.info("namespace %s no longer matches %r: removed", name, self._followed.predicate)

    def _matches(self, namespace: KubeObject) -> bool:
        try:
            return self._followed.predicate(namespace)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            log.exception(
                "%r raised at the namespace %s, which is not read",
                self._followed.predicate,
                namespace.name,
            )
            return False

    def __repr__(self) -> str:
        predicate = self._followed.predicate
        return f"<NamespaceFollower {predicate!r} namespaces={len(self._present)}>"
