"""Proving now and then that a cache is right: one comparison with the server every so often.

Everything else here makes sure that the cache is right; this finds out whether it is. client-go
has nothing like it for a running informer. What a comparison costs the server is a full list, page
by page, so it is asked seldom, never by all informers at once, and once only: a server that can't
be asked is asked again when the next comparison is due. How it is done is ``verifying``'s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeAlias

from aioinformer._core.outcomes import classify
from aioinformer._core.verification import Verification
from aioinformer.errors import CacheDiffers, FetchError, NotSynced

__all__ = ["LEAST", "Proofs"]

LEAST = 60.0
"""Seconds: the least between two comparisons. Each is a full list, which the server reads from its
store and not from its cache."""

SPREAD = 0.2
"""By how much of the period one may come early or late: informers that started together aren't to
list together for ever."""

_Tell: TypeAlias = Callable[[str, Exception], None]


class Proofs:
    """Has one cache compared, and tells when it differs or could not be compared."""

    def __init__(
        self, period: float, verify: Callable[[], Awaitable[Verification]], tell: _Tell
    ) -> None:
        """Make it; ``run`` starts it.

        Args:
            period: seconds between two comparisons, ``LEAST`` at least; 0 for never.
            verify: makes one.
            tell: is told what it was taken for, in one word, and the error.

        Raises:
            ValueError: ``period`` is negative, or no number.
        """
        if not period >= 0:  # nor may it be nan
            raise ValueError(f"verify_every must be seconds, or 0 for never, not {period:g}")
        self.period = max(period, LEAST) if period else 0.0
        """Seconds between two comparisons; 0 for never."""
        self._verify = verify
        self._tell = tell

    async def run(self) -> NoReturn:
        """Compare every so often, until cancelled."""
        while True:
            await asyncio.sleep(self.period * random.uniform(1 - SPREAD, 1 + SPREAD))
            await self._prove()

    async def _prove(self) -> None:
        try:
            found = await self._verify()
        except NotSynced:  # nothing is cached yet, and health says why
            return
        except FetchError as error:
            self._tell(classify(error, opened=False).name.lower(), error)
        else:
            if not found:
                differences = {str(key): how for key, how in found.differences.items()}
                self._tell("differs", CacheDiffers(str(found), differences=differences))

    def __repr__(self) -> str:
        return f"<Proofs every={self.period:g}>"
