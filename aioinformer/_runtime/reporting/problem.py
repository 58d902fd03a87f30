"""The failure that an error hook is called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.reporting.error_texts import describe_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something went wrong, and the informer goes on."""

    informer: str
    phase: str
    """The work that failed: ``list``, ``watchlist``, ``watch``, ``freshness_check``, ``discovery``,
    ``rewind``, ``object``, ``handler``; of a controller ``reconcile``, ``trigger``; ``lease``, with
    the name of the Lease as ``informer``."""
    cause: str
    """The kind of failure, in one word: the name of an ``Outcome`` in lower case, such as
    ``access_denied`` (403), ``unauthorized`` (401), ``expired``, ``unreachable``,
    ``watch_refused`` or ``idle_timeout``; ``rejected`` for an object; for a handler or a
    controller, its name."""
    error: Exception
    """The exception, with the server's Status in it if there is one."""
    retry_in: float | None = None
    """Seconds to the next attempt; ``None`` if there is none."""
    key: ObjectKey | None = None
    """The object that a controller failed to reconcile."""

    def __str__(self) -> str:
        again = "" if self.retry_in is None else f"; next attempt in {self.retry_in:.1f} s"
        of = "" if self.key is None else f" of {self.key}"
        return (
            f"{self.informer}: {self.phase}{of} {self.cause}: {describe_error(self.error)}{again}"
        )


OnError: TypeAlias = Callable[[Problem], None]
"""Is called with every problem, in the event loop: it must be quick and must not wait. Its
exceptions are logged and have no other effect."""
