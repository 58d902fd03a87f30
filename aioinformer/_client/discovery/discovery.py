"""What one server serves, found by name, and how long an answer holds.

Asking is ``survey``'s work, what a name means ``catalogue``'s. Here: one question at a time,
whose answer all who wait for it share; an age; and a name that is missing is asked for again,
though not at every call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from aioinformer._client.discovery.catalogue import Catalogue, places, remembered
from aioinformer._client.discovery.fetcher import Fetch, Survey
from aioinformer._client.discovery.served_check import Lookups
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError

__all__ = ["Discovery"]

T = TypeVar("T")

FRESH = 600.0
"""Seconds for which an answer is used again. A name that it lacks is asked for anew, so only a
resource that has gone or moved is seen late (kubectl keeps its answers for 6 hours)."""

ABSENT = 2.0
"""Seconds for which a name stays missing: a program that waits in a loop for its custom resource
asks the server this often."""


class Discovery:
    """What one server serves, asked for when needed and kept for a while."""

    def __init__(self, fetch: Fetch, where: Callable[[], str] = str) -> None:
        """Nothing asked yet.

        Args:
            fetch: asks the server.
            where: the server's URL, and the file and context that name it, for messages.
        """
        self._where = where
        self._survey = Survey(fetch, where)
        self._lookups = Lookups(self._survey.served)
        self._catalogue = Catalogue()
        self._read_at = float("-inf")
        self._asked: dict[str, float] = {}
        """When a name was last asked for in the group that it carries."""
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._surveys = 0
        """How many have ended, well or not."""
        self._failure: FetchError | None = None
        """What the last one failed with, while somebody waits who shall hear it."""

    async def find(self, name: str) -> Resource:
        """The resource of that name. Names are those of ``Client.resource``.

        Raises:
            AmbiguousResource: several groups have it.
            UnknownResource: there is none, also after asking again.
            UnwatchableResource: it can't be listed and watched.
            FetchError: it can't be known: the server could not be asked, or doesn't tell
                (phase ``discovery``).
        """
        if self._age() < FRESH and (known := self._catalogue.find(name)):
            return known
        if self._age() >= ABSENT:
            await self._read()
        found = self._catalogue.find(name)
        if found is None and self._dark(name):
            await self._ask_its_group(name)
            found = self._catalogue.find(name)
        if found is None:
            near = await _stepwise(self._catalogue.similar(name))
            raise self._catalogue.missing(name, near, where=self._where())
        return found

    async def served(self, resource: Resource) -> Resource | None:
        """Whether a resource is served now. See ``Client.served``."""
        return await self._lookups(resource)

    def _age(self) -> float:
        return self._now() - self._read_at

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # -- asking --------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read everything, unless another caller does: then its end, good or bad, is shared."""
        before = self._surveys
        self._waiting += 1
        try:
            async with self._lock:
                if self._surveys == before:  # a survey that was cancelled doesn't count
                    await self._survey_now()
                elif self._failure is not None:
                    raise remembered(self._failure)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._failure = None

    async def _survey_now(self) -> None:
        try:
            self._catalogue = await self._survey.everything()
        except FetchError as error:
            self._failure = remembered(error)
            self._surveys += 1
            raise
        self._failure = None
        self._surveys += 1
        self._read_at = self._now()

    def _dark(self, name: str) -> bool:
        """Whether a name carries a group of which not everything was to be learnt."""
        return any(not self._catalogue.knows(group) for group, _ in places(name))

    async def _ask_its_group(self, name: str) -> None:
        async with self._lock:
            now = self._now()
            self._asked = {each: at for each, at in self._asked.items() if now - at < ABSENT}
            if name not in self._asked:
                more = await self._survey.groups_in(name)
                self._catalogue = self._catalogue.with_more(more)
                self._asked[name] = self._now()

    def __repr__(self) -> str:
        return f"<Discovery {self._catalogue!r}>"


async def _stepwise(steps: Generator[None, None, T]) -> T:
    """What a computation returns, with a turn for others after each of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            returned: T = end.value
            return returned
        await asyncio.sleep(0)
