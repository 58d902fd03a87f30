"""The position of a durable listener: the part of the informer's states that it has handled.

A cache file holds a state that every durable listener has returned from. The checkpointer therefore
takes a state, puts a mark behind the events that lead to the state, and writes the state once each
durable listener has asked for the event behind its mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from aioinformer._runtime.delivery.listener import Listener
from aioinformer.errors import UsageError

DurableSince: TypeAlias = Literal["everything", "now"]
"""The events that a new durable name begins with: all cached objects, or later changes only."""


class DurablePosition:
    """The position of one durable listener."""

    def __init__(
        self,
        name: str,
        since: DurableSince,
        keep: Callable[[Listener, DurablePosition], None] | None = None,
    ) -> None:
        """Make the position of a listener that has not received anything.

        Args:
            name: the name under which the file knows the listener.
            since: the first events for a name that the file doesn't know.
            keep: lets the file keep the position; ``None`` for a position that is not kept.
        """
        self.name = name
        self._keep = keep
        self.known_scopes: set[str] = set()
        """The scopes whose stored state this listener has handled in an earlier run."""
        self.handled = False
        """True if the closed listener had handled everything that it had received."""
        self.on_closing: Callable[[], None] | None = None
        """Called when the listener is about to be closed."""
        self.begun: bool = since == "everything"
        """True if the first state of a scope is delivered. A listener that begins now has begun
        when the first state of its informer is complete, in this run or an earlier one."""
        self._since = since

    def check_concurrency(self, concurrency: int) -> None:
        """Raise ``UsageError`` unless a durable handler can make so many calls at once."""
        if concurrency > 1:
            raise UsageError(
                "a durable handler has concurrency=1, since its position is one place in the order "
                f"of events; not {concurrency}"
            )

    def join(self, listener: Listener) -> None:
        """Give the listener this position; raise ``UsageError`` if the file can't keep it."""
        keep, self._keep = self._keep, None
        if keep is None:
            listener.position = self
        else:
            keep(listener, self)

    def skips_first_state(self, scope: str, *, restored: bool) -> bool:
        """Return True if the first state of a scope is not delivered.

        Args:
            scope: the name of the scope; empty for the only one.
            restored: True if the state comes from the file.
        """
        return (restored and scope in self.known_scopes) or not self.begun

    def close(self, *, idle: bool) -> None:
        """Record that the listener is about to be closed.

        Args:
            idle: True if the listener has handled everything that it has received.
        """
        on_closing, self.on_closing = self.on_closing, None
        if on_closing is not None:
            self.handled = idle
            on_closing()

    def __repr__(self) -> str:
        return f"<DurablePosition {self.name} {self._since}>"


def check_durable(name: object, since: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless a listener can have this name and beginning."""
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"durable must be a name, not {name!r}")
    if since not in ("everything", "now"):
        raise ValueError(f"durable_since must be 'everything' or 'now', not {since!r}")
