"""The scan of a cache, which yields to the event loop.

Reading each of 100,000 objects takes a tenth of a second. ``Lister.list`` does that in one step,
which is right in a thread. ``Lister.scan`` takes the same search in steps, and yields to the loop
every few milliseconds. The lister belongs to the core, which knows no event loop; an informer
gives its lister the ``Scan`` of this module.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice, running_loop

if TYPE_CHECKING:  # for programs that select objects
    from aioinformer._core.cache.query import Search

T = TypeVar("T", default=KubeObject)


class Scan(Generic[T]):
    """The objects of one ``scan``. A scan can be iterated once, and left at any time."""

    def __init__(self, search: Search[T]) -> None:
        """Iterate over the results of ``search``.

        Raises:
            UsageError: called without a running event loop.
        """
        running_loop()
        self._search = search
        # A conversion may take a millisecond: then the clock is read after each object.
        self._step_size = ITEMS_PER_STEP if search.is_fast else 1
        self._results: deque[T] = deque()
        self._time_slice = TimeSlice()

    def __aiter__(self) -> Scan[T]:
        return self

    async def __anext__(self) -> T:
        while not self._results:
            if self._search.done:
                raise StopAsyncIteration
            # Yield also if every step finds objects: the body of the caller's loop takes time, too,
            # and may never wait.
            await self._time_slice.maybe_yield()
            self._results.extend(self._search.step(self._step_size))
        return self._results.popleft()

    def __repr__(self) -> str:
        return f"<Scan {self._search!r}>"
