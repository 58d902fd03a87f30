"""The durable listeners of one informer, as far as its cache file is concerned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from aioinformer._core.delivery.replay import EventBatch
from aioinformer._runtime.delivery.listener import Listener
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.cachefile.file_access import FileAccess, FileUse
from aioinformer.cachefile.stored_scope import StoredScope
from aioinformer.errors import UsageError


class DurableListeners:
    def __init__(self, informer: str, access: FileAccess, use: FileUse) -> None:
        """Make a collection without listeners, for the informer with this ``use`` of the file."""
        self._informer = informer
        self._access = access
        self._use = use
        self._listeners: list[tuple[Listener, DurablePosition]] = []

    def add(
        self, listener: Listener, position: DurablePosition, on_closing: Callable[[], None]
    ) -> None:
        """Add a listener; raise ``UsageError`` if its name is taken."""
        name, use = position.name, self._use
        if name in use.names:
            raise UsageError(
                f"durable={name!r} is the name of another listener of {self._informer}"
            )
        for other in self._access.uses:
            # The file could not tell which of the two has received a namespace that left.
            if other is not use and other.family == use.family != "" and name in other.names:
                raise UsageError(
                    f"durable={name!r} is the name of a listener of another informer of "
                    f"{self._informer}, which reads other namespaces and has the same cache file; "
                    "choose another name"
                )
        listener.position, position.on_closing = position, on_closing
        self._listeners.append((listener, position))
        use.names.add(name)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._use.names)

    @property
    def closed(self) -> list[str]:
        """The names of the listeners that were closed."""
        return [each.name for each, _ in self._listeners if each.closed]

    def begin(self, names: Collection[str]) -> None:
        """Record that the listeners of these names have begun in an earlier run."""
        for _, position in self._listeners:
            if position.name in names:
                position.begun = True

    def restore(self, scope: str, stored: StoredScope) -> None:
        """Record which listeners know the state from which a scope is continued."""
        for _, position in self._listeners:
            if position.name in stored.handlers:
                position.known_scopes.add(scope)

    def put_removal(self, stored: StoredScope, batches: Sequence[EventBatch]) -> None:
        """Deliver the removal of a stored state to the listeners that know it."""
        at = asyncio.get_running_loop().time()
        for listener, position in self._listeners:
            if position.name in stored.handlers:
                listener.put_relist(batches, at, scope=stored.identity)

    def mark(self) -> None:
        """Mark the events up to now."""
        for listener, _ in self._listeners:
            listener.mark()

    @property
    def have_handled(self) -> bool:
        """True if every listener has handled the events up to its mark."""
        return all(
            not listener.mailbox.marks_pending or position.handled
            for listener, position in self._listeners
        )

    @property
    def idle(self) -> bool:
        """True if every listener has handled everything, and waits for the next event."""
        return all(listener.idle for listener, _ in self._listeners)

    def complete(self) -> None:
        """Record that the closed listeners had handled everything."""
        for _, position in self._listeners:
            position.handled = True

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def __repr__(self) -> str:
        return f"<DurableListeners of {self._informer} {sorted(self.names)}>"
