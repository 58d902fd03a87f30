"""Where a reflector stands between the list and the watch.

An outcome goes in, the next request comes out: which page or stream to ask for, from which
resourceVersion, and after what wait. What follows what is ``rules``' table; this is the memory
that it needs. It knows no network (the client renders requests), no clock and no chance (they are
arguments), and no objects.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import (
    ANY,
    NEWEST,
    PAGE_SIZE,
    AnyRequest,
    ListRequest,
    LookupRequest,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import STREAMLESS, UNLUCKY, Habits
from aioinformer._core.listwatch.transitions import RULES, UNFIT, Goto, Pause, Phase
from aioinformer._core.objects.identity import older
from aioinformer.errors import ProtocolError

__all__ = ["Cursor", "Step"]

WATCH_SECONDS = (300, 600)
"""How long a watch is asked to last: random, so that streams opened together don't end together
(client-go)."""
SHORT_WATCH = 1.0
"""A watch that ends sooner, with nothing in it, was not served (client-go's VeryShortWatch)."""
BRIEF_WATCH = 10.0
"""A watch that ends sooner, with nothing in it, is not asked for again at once if the one before
was brief too. (client-go asks again without a pause.)"""
BRIEF_SPACING = 20.0
"""Seconds between the beginnings of watches that a proxy keeps cutting: three a minute."""
STUBBORN = 3
"""After so many watches in a row that were not served, get the state again; after so many
WatchLists that came to nothing, list."""


class Step(Struct, frozen=True):
    """What to do next."""

    request: AnyRequest
    delay: float = 0.0
    """Seconds to wait first."""


class Cursor:
    """The state: the last request, the last resourceVersion, and what is known of the server."""

    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        page_size: int = 0,
        habits: Habits | None = None,
        watch_list: bool = False,
        lookup: bool = False,
    ) -> None:
        """Make a cursor; ``begin`` gives its first request.

        Args:
            backoff: the waits after failures.
            page_size: items a page, 0 for client-go's rule: 500, and no limit for a list at a
                known resourceVersion, since a limit would bypass the server's cache.
            habits: what is known of the resource.
            watch_list: whether to ask for a WatchList before a list.
            lookup: whether there is a way to see if the resource is served.
        """
        self.backoff = backoff or Backoff()
        self.habits = habits or Habits()
        self.resource_version = ""
        """The last one received; where the next watch starts. Empty until the first state."""
        self.rewound = False
        """Whether the state that was read last is older than one seen before."""
        self.by_content = False
        """Whether it is to be compared with the one before by content: versions prove nothing."""
        self.streamed = False
        """Whether the whole state is, or was last, read by a WatchList."""
        self.request: AnyRequest = ListRequest(ANY, page_size or PAGE_SIZE)
        """The request under way."""
        self._page_size = page_size
        self._watch_list = watch_list
        self._lookup = lookup
        self.settled = False
        """Whether the watch under way has no initial state ahead of it."""
        self._list_version = ANY
        self._needs_newest = False
        self._cache_off = False
        self._token = ""
        self._first_version = ""
        self._distrusted = False
        self._unfit = 0
        self._streamless = 0.0
        """For how long to list after this, once a list has worked; 0 if nothing is wrong."""
        self._brief = False
        self._short = 0
        self._asked_at = 0.0

    def begin(self, *, now: float, jitter: float) -> AnyRequest:
        """The first request. Arguments as for ``advance``."""
        self._asked_at = now
        self.request = self._request(Goto.STATE, now, jitter)
        return self.request

    @property
    def phase(self) -> Phase:
        """What the request under way is."""
        request = self.request
        if isinstance(request, LookupRequest):
            return Phase.LOOKUP
        if isinstance(request, WatchRequest):
            return Phase.STREAM if request.initial and not self.settled else Phase.WATCH
        if request.probe:
            return Phase.PROBE
        return Phase.PAGE if request.continue_token else Phase.LIST

    @property
    def trusted(self) -> bool:
        """Whether equal versions make equal objects in the state under way. Not if the server may
        have gone back in time: a consistent read may be of an older state than one seen before.
        """
        return not (self._distrusted or self._consistent)

    @property
    def _consistent(self) -> bool:
        """Whether the state under way is read consistently, and not for the first time."""
        request = self.request
        asked = "" if isinstance(request, LookupRequest) else request.resource_version
        return asked == NEWEST and bool(self.resource_version)

    # -- what came -----------------------------------------------------------------------------

    def page(self, resource_version: str, continue_token: str) -> Outcome:
        """A page came; the outcome to advance with.

        Raises:
            ProtocolError: it has no version. A watch from none would begin with everything.
        """
        if not resource_version:
            raise ProtocolError("the list has no resourceVersion to watch from", phase="list")
        if self.phase is Phase.PROBE:
            return Outcome.REWOUND if self._goes_back(resource_version) else Outcome.COMPLETE
        if self.phase is Phase.PAGE and continue_token == self._token:
            raise ProtocolError("the list goes on with the page that it was on", phase="list")
        if self.phase is Phase.LIST:
            self._first_version = resource_version
        self._token = continue_token
        if continue_token:
            # A list from the cache is never cut into pages, so this server has no cache.
            self._cache_off = self._cache_off or self._list_version == ANY
            return Outcome.MORE
        # Of pages that are not of one moment, the first one's: nothing after it is missed.
        if not self._consistent and self._goes_back(self._first_version):
            return Outcome.REWOUND
        self._arrive(self._first_version)
        return Outcome.COMPLETE

    def settle(self, resource_version: str) -> None:
        """The initial state of a WatchList is complete. What follows is a watch.

        Raises:
            ProtocolError: the mark behind it has no version.
        """
        if not resource_version:
            raise ProtocolError("the end mark of a WatchList has no version", phase="watch")
        if not self._consistent and self._goes_back(resource_version):
            raise ProtocolError("the state is older than the one asked for", phase="watch")
        self._arrive(resource_version)
        self.settled = True

    def _arrive(self, resource_version: str) -> None:
        """A whole state was read, as of this version."""
        self.rewound = self._consistent and self._goes_back(resource_version)
        self.by_content = self.rewound or self._distrusted
        self._distrusted = False
        self.resource_version = resource_version
        self._needs_newest = False
        self._unfit = 0

    def _goes_back(self, resource_version: str) -> bool:
        # The first read of a list is never evidence: "any version" may be any old one.
        return older(resource_version, self.resource_version)

    def distrust(self) -> None:
        """The next state is of other objects, or of the same ones in another form: equal versions
        don't make equal objects.
        """
        self._distrusted = True

    def saw(self, resource_version: str) -> None:
        """The watch delivered an event or bookmark.

        An empty version is no version, and an older one is no place to go back to: a watch from
        there would bring once more what came since.
        """
        if resource_version and not older(resource_version, self.resource_version):
            self.resource_version = resource_version
            self._unfit = 0

    def ended(self, *, lasted: float, changed: bool) -> Outcome:
        """How a watch ended that ended without an error.

        Args:
            lasted: seconds.
            changed: whether a change came. A bookmark is none, and neither is an old event once
                more: who sends one and hangs up would be asked without a pause. (client-go
                counts events, and does ask so.) Who brings one change at a time is believed a
                few times in a row.
        """
        request = self.request
        started = request.resource_version if isinstance(request, WatchRequest) else ""
        self._short = self._short + 1 if lasted < SHORT_WATCH else 0
        if changed and self.phase is Phase.WATCH and self.resource_version != started:
            return Outcome.BRIEF if self._short > STUBBORN else Outcome.ENDED
        if lasted >= BRIEF_WATCH:
            return Outcome.ENDED
        return Outcome.UNSERVED if lasted < SHORT_WATCH else Outcome.BRIEF

    # -- what follows --------------------------------------------------------------------------

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> Step:
        """The request under way ended so; what comes next.

        Args:
            outcome: how it ended.
            now: seconds of a monotonic clock.
            jitter: chance in [0, 1), for the wait and the length of a watch.
            retry_after: the least wait that the server asked for, in seconds.
        """
        rule = RULES[self.phase][outcome]
        goto = self._unless_unfit(rule.goto, outcome)
        if goto is Goto.LIST:
            self._streamless = UNLUCKY if outcome in UNFIT[Phase.STREAM] else STREAMLESS
        elif outcome is Outcome.COMPLETE and self._streamless:
            # Only now: what a list is answered alike says nothing of WatchLists.
            self.habits.no_stream(now, self._streamless)
            self._streamless = 0.0
        if outcome is Outcome.SILENT:
            self.habits.was_silent()
        delay = self._pause(rule.pause, now, jitter, retry_after or 0.0)
        self._brief = outcome in (Outcome.BRIEF, Outcome.UNSERVED)
        self._asked_at = now + delay
        request = self._request(goto, self._asked_at, jitter)
        self.request = replace(request, restart=outcome not in (Outcome.MORE, Outcome.COMPLETE))
        return Step(self.request, delay)

    def _unless_unfit(self, goto: Goto, outcome: Outcome) -> Goto:
        """Another way, if this one has come to nothing several times in a row."""
        phase = self.phase
        if outcome is Outcome.ENDED and phase is Phase.WATCH:
            self._unfit = 0
        if outcome not in UNFIT.get(phase, ()):
            return goto
        self._unfit += 1
        if self._unfit < STUBBORN:
            return goto
        self._unfit = 0
        return Goto.LIST if phase is Phase.STREAM else Goto.STATE

    def _pause(self, pause: Pause, now: float, jitter: float, least: float) -> float:
        if pause is Pause.NONE:
            return 0.0
        if pause is Pause.SPACED:
            return max(0.0, self._asked_at + BRIEF_SPACING - now) if self._brief else 0.0
        if pause is Pause.IF_AGAIN and not least and self.backoff.first(now):
            return self.backoff.skip(now)
        return self.backoff.next(now, jitter, least=least)

    def _request(self, goto: Goto, now: float, jitter: float) -> AnyRequest:
        match goto:
            case Goto.WATCH:
                self.settled = True
                return WatchRequest(self.resource_version, _length(jitter))
            case Goto.PAGE:
                return ListRequest(self._list_version, self._limit(), self._token)
            case Goto.LIST_WHOLE:
                return ListRequest(self._list_version, 0)
            case Goto.PROBE:
                return ListRequest(NEWEST, 1, probe=True)
            case Goto.LOOKUP if self._lookup:
                return LookupRequest()
            case Goto.STATE | Goto.STATE_NEWEST | Goto.LIST | Goto.LOOKUP:
                self._needs_newest = self._needs_newest or goto is Goto.STATE_NEWEST
                return self._whole_state(now, jitter)

    def _whole_state(self, now: float, jitter: float) -> AnyRequest:
        """A WatchList if there is hope, else the first page of a list."""
        known = NEWEST if self._needs_newest else self.resource_version
        self.streamed = self._watch_list and not self._streamless and self.habits.streams(now)
        if self.streamed:
            self.settled = False
            return WatchRequest(known, _length(jitter), initial=True)
        self._list_version = known or (NEWEST if self._needs_newest else ANY)
        return ListRequest(self._list_version, self._limit())

    def _limit(self) -> int:
        if self._page_size:
            return self._page_size
        from_cache = self._list_version not in (ANY, NEWEST) and not self._cache_off
        return 0 if from_cache else PAGE_SIZE

    def __repr__(self) -> str:
        known = self.resource_version or "none"
        return f"<Cursor {self.phase.name} rv={known} failures={self.backoff.failures}>"


def _length(jitter: float) -> int:
    """Seconds that a watch is asked to last."""
    low, high = WATCH_SECONDS
    return int(low + (high - low) * jitter)
