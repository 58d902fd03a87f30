"""A lister that can also be read bit by bit, in an event loop.

Looking at each of 100,000 objects takes a tenth of a second. ``Lister`` does that in one step,
which is right in a thread; a ``scan`` stops every few milliseconds for everybody else.
"""

from __future__ import annotations

from collections import deque
from typing import Generic

from typing_extensions import TypeVar

from aioinformer._core.cache.lister import Lister
from aioinformer._core.cache.query import FieldChoice, LabelChoice, Search, Where
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice, running_loop

__all__ = ["LiveLister", "Scan"]


T = TypeVar("T", default=KubeObject)


class LiveLister(Lister[T]):
    """Reads what an informer has cached. All but ``scan`` is safe to use from any thread."""

    def scan(
        self,
        *,
        labels: LabelChoice = None,
        namespace: str | None = None,
        fields: FieldChoice = None,
        where: Where[T] | None = None,
    ) -> Scan[T]:
        """What ``list`` gives, found bit by bit: ``async for obj in lister.scan(labels=...)``.

        It shows the state of the moment at which it was asked for, whatever changes meanwhile.
        The arguments and errors are those of ``list``.

        Raises:
            UsageError: it was not called in the event loop.
        """
        running_loop()
        return Scan(self._search(namespace, labels, fields, where))


class Scan(Generic[T]):
    """The objects of one ``scan``; iterate it once, and leave it whenever you like."""

    def __init__(self, search: Search[T]) -> None:
        """Iterate what ``search`` finds."""
        self._search = search
        self._step_size = (
            ITEMS_PER_STEP if search.is_fast else 1
        )  # a conversion may take a millisecond
        self._results: deque[T] = deque()
        self._time_slice = TimeSlice()

    def __aiter__(self) -> Scan[T]:
        return self

    async def __anext__(self) -> T:
        while not self._results:
            if self._search.done:
                raise StopAsyncIteration
            # Also where everything is found: who iterates works too, and need not ever wait.
            await self._time_slice.maybe_yield()
            self._results.extend(self._search.step(self._step_size))
        return self._results.popleft()

    def __repr__(self) -> str:
        return f"<Scan {self._search!r}>"
