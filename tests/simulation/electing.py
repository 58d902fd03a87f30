"""Elections in simulated time: candidates with clocks of their own, pauses, and a bad network.

Each candidate is an ``Election`` and as much of a shell as it needs; the Lease is in a ``Cluster``.
Everything that happens is drawn from a seed. Requests and answers are slow or lost, servers fail
before or after they did what was asked, somebody touches the Lease's labels. Candidates are killed
and begin anew, are cut off, stop for a while in the middle of anything, and most of all where it
hurts: as their lease runs out. Clocks are hours apart and run at different rates; what runs under
the lease takes time to end. A pause, that time, and what the rates add up to stay below what the
numbers of the leader allow, but hardly so: no two may ever be inside at once.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeAlias

from aioinformer import ObjectKey
from aioinformer._core.leaderelection.election import (
    Create,
    Election,
    Ended,
    Lost,
    Read,
    Update,
    Wait,
)
from aioinformer._core.leaderelection.lease import Fencing
from aioinformer.errors import Conflict, NotFound, ServerError
from aioinformer.testing import Cluster
from tests.simulation.natures import Nature, draw_duel, draw_natures

KEY = ObjectKey("web", "controller")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECONDS = 150.0
"""How long a history is."""
CALM = 50.0
"""Seconds at its end in which nothing goes wrong, and somebody must come to lead."""


class Overlap(AssertionError):
    """Two were inside at once, or a later term had no greater number."""


class World:
    """One history."""

    def __init__(
        self,
        seed: int,
        *,
        election: type[Election] = Election,
        candidate: type[Candidate] | None = None,
    ) -> None:
        self.chance = Random(seed)
        self.election = election
        self.now = 0.0
        self.cluster = Cluster(seed=seed)
        self.inside: list[Candidate] = []
        self.terms: list[Fencing] = []
        self.losses = 0
        self.releases = 0
        self._order = count()
        self._later: list[tuple[float, float, int, Callable[[], None]]] = []
        self.duel = self.chance.random() < 0.5
        self.trouble = 0.0 if self.duel else self.chance.choice([0.0, 0.05, 0.2, 0.5])
        made, draw = candidate or Candidate, draw_duel if self.duel else draw_natures
        self.candidates = [made(self, nature) for nature in draw(self.chance)]

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Do something then; what is due together comes in any order."""
        order = (max(when, self.now), self.chance.random(), next(self._order), do)
        heapq.heappush(self._later, order)

    def run(self) -> None:
        """All of it."""
        for candidate in self.candidates:
            self.at(self.chance.uniform(0, 5), candidate.begin)
            if not self.duel:
                self.at(self.chance.uniform(0, 20), candidate.pause)
            self.at(self.chance.uniform(0, 20), candidate.slow_down)
        self.at(self.chance.uniform(5, 30), self._touch)
        while self._later and self._later[0][0] <= SECONDS:
            self.now, _, _, do = heapq.heappop(self._later)
            do()

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self.now > SECONDS - CALM

    def wrong(self) -> bool:
        """Whether something goes wrong now."""
        return not self.calm and self.chance.random() < self.trouble

    def enter(self, candidate: Candidate, fencing: Fencing) -> None:
        """A body begins to run."""
        self.inside.append(candidate)
        if len(self.inside) > 1:
            raise Overlap(f"at {self.now:.3f} s: {self.inside}")
        if self.terms and (fencing <= self.terms[-1] or fencing.transitions < len(self.terms)):
            raise Overlap(f"at {self.now:.3f} s: term {fencing} after {self.terms[-1]}")
        self.terms.append(fencing)

    def leave(self, candidate: Candidate) -> None:
        """It has ended."""
        self.inside.remove(candidate)

    def _touch(self) -> None:
        try:
            labels = {"touched": str(int(self.now))}
            patch = {"metadata": {"labels": labels}}
            self.cluster.merge_patch("leases", KEY.name, patch, namespace="web")
        except NotFound:
            pass  # nobody has made one yet
        self.at(self.now + self.chance.uniform(5, 30), self._touch)


_Answer: TypeAlias = dict[str, Any] | ServerError | None
"""A Lease, or an error. ``None`` says nothing about what was done."""


@dataclass(slots=True)
class _Request:
    """On its way, unless nobody waits for it any more."""

    action: Read | Create | Update
    abandoned: bool = field(default=False)


class Candidate:
    """A process: a clock, an election, and what runs under it."""

    def __init__(self, world: World, nature: Nature) -> None:
        self.world = world
        self.nature = nature
        self._request: _Request | None = None
        self._life = 0
        self._awake_at = 0.0
        self._may_pause_at = 0.0
        self._reached_at = 0.0
        self._delays = (0.0, 0.0)
        self._stops = False
        self._inside = False
        self._ending = False
        self.election = self._made()

    def _made(self) -> Election:
        return self.world.election(KEY, identity=self.nature.identity, times=self.nature.times)

    # -- time ----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """By its own clock."""
        return self.world.now * self.nature.rate + 1000.0

    @property
    def wall(self) -> dt.datetime:
        """The date, as it believes."""
        return START + dt.timedelta(seconds=self.now + self.nature.ahead)

    def later(self, local: float, do: Callable[[], None]) -> None:
        """Do something when its clock shows that, or when it is awake after that."""
        life = self._life

        def act() -> None:
            if self._life != life:
                return
            if self.world.now < self._awake_at:
                self.world.at(self._awake_at, act)
            else:
                do()

        self.world.at((local - 1000.0) / self.nature.rate, act)

    def pause(self) -> None:
        """Stop for a while, now and then."""
        self._stop()
        self.world.at(self.world.now + self.world.chance.uniform(1, 40), self.pause)

    def slow_down(self) -> None:
        """Its network changes: requests and answers take longer, or less long."""
        chance = self.world.chance
        there, back = chance.choice([0.01, 0.3, 2.0]), chance.choice([0.01, 0.3, 2.0, 4.0])
        if self.world.duel:
            there, back = 0.01, back if self.nature.unlucky else 0.01
        self._delays = there, back
        self.world.at(self.world.now + chance.uniform(5, 15), self.cut_off)

    def cut_off(self) -> None:
        """None of its requests reach the server for a while, and it stops as its time is up."""
        chance = self.world.chance
        if not self.world.calm and self.nature.unlucky:
            self._reached_at = self.world.now + chance.uniform(5, 40)
            self._stops = self.world.duel or chance.random() < 0.7
        self.world.at(self._reached_at + chance.uniform(1, 30), self.slow_down)

    def _stop(self) -> bool:
        """Stop, but not so soon after the last time that one body would end in both."""
        now = self.world.now
        if self.world.calm or now < self._may_pause_at:
            return False
        self._awake_at = now + self.nature.pause * self._much()
        self._may_pause_at = self._awake_at + self.nature.ending + 0.1
        return True

    def _much(self) -> float:
        """A share, often all of it."""
        certain = self.world.duel or self.world.chance.random() < 0.5
        return 1.0 if certain else self.world.chance.random()

    # -- the shell -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Run for a term, unless it does."""
        if self.election.phase in ("idle", "lost", "ended"):
            self.election.seek(self.now)
            self.go_on()

    def go_on(self) -> None:
        """Do what there is to do, if nothing is under way."""
        if self._request is not None and not self._request.abandoned:
            return
        match self.election.step(self.now, self.wall):
            case Wait(until):
                self.later(until, self.go_on)
            case Lost():
                self.world.losses += 1
                self.evict()
            case Ended(released):
                self.world.releases += released
                self.later(self.now + self.world.chance.uniform(0, 5), self.begin)
            case action:
                self._send(action)

    def evict(self) -> None:
        """End what runs under the lease; when it has ended, begin anew."""
        if self._stops and self._inside and not self._ending and self._stop():
            self._stops = False  # just before
            self.later(self.now, self.evict)
        elif self._inside and not self._ending:
            self._ending = True
            self.later(self.now + self._to_end(), self.ended)
        elif not self._inside:
            self.later(self.now, self.begin)

    def _to_end(self) -> float:
        return self.nature.ending * self._much() * self.nature.rate

    def look(self) -> None:
        """Time may have ended it."""
        self.election.check(self.now)
        if self._inside and not self.election.leads(self.now):
            self.evict()
        elif self._inside:
            self.later(self.election.until, self.look)

    def heard(self) -> None:
        """Something was answered: perhaps it leads now."""
        if self.election.leads(self.now) and not self._inside:
            fencing = self.election.fencing
            assert fencing is not None
            self.world.enter(self, fencing)
            self._inside = True
            self.later(self.election.until, self.look)
            self.later(self.now + self.world.chance.uniform(0, self.nature.stays), self.enough)
            if not self.world.duel and self.world.chance.random() < 0.2:
                self.later(self.now + self.world.chance.uniform(0, 30), self.die)
        self.go_on()

    def enough(self) -> None:
        """What runs ends by itself. The lease is renewed until it has."""
        if self._inside and not self._ending and not self.world.calm:
            self._ending = True
            self.later(self.now + self._to_end(), self.ended)

    def ended(self) -> None:
        """Nothing runs under the lease any more."""
        self.world.leave(self)
        self._inside = self._ending = False
        self.give_up()

    def give_up(self) -> None:
        """Release it, if there is something to be released."""
        if self._request is not None:
            self._request.abandoned = True
        self.election.release(self.now)
        self.go_on()

    def die(self) -> None:
        """Be killed, and come back with nothing."""
        if self.world.calm:
            return
        if self._inside:
            self.world.leave(self)
        self._life += 1
        self._inside = self._ending = False
        self._request, self.election = None, self._made()
        self.later(self.now + self.world.chance.uniform(0, 20), self.begin)

    # -- the network ---------------------------------------------------------------------------

    @property
    def patience(self) -> float:
        """Seconds that a request may take."""
        return self.election.patience(self.now)

    def _send(self, action: Read | Create | Update) -> None:
        request = self._request = _Request(action)
        self.later(self.now + self.patience, lambda: self._answered(request, None))
        if not self.world.wrong() and self.world.now >= self._reached_at:
            self.world.at(self.world.now + self._way(0), lambda: self._arrived(request))

    def _way(self, back: int) -> float:
        """Seconds that something is on its way; some arrive when nobody waits for it any more."""
        delay = (0.1 if self.world.calm else self._delays[back]) * self.world.chance.random()
        return delay + (self.world.chance.uniform(0, 20) if self.world.wrong() else 0.0)

    def _arrived(self, request: _Request) -> None:
        """At the server, whatever has become of who sent it."""
        if self.world.wrong():
            self._answer(request, None)  # a 5xx, and nothing was done
            return
        answer = self._done(request.action)
        if self.world.wrong():
            self._answer(request, None)  # a 5xx, but it was done
        elif not self.world.wrong():
            self._answer(request, answer)

    def _answer(self, request: _Request, answer: _Answer) -> None:
        local = (self.world.now + self._way(1)) * self.nature.rate + 1000.0
        self.later(local, lambda: self._answered(request, answer))

    def _done(self, action: Read | Create | Update) -> _Answer:
        try:
            match action:
                case Read():
                    return self.world.cluster.get("leases", KEY.name, namespace=KEY.namespace)
                case Create(body):
                    return self.world.cluster.create("leases", body, namespace=KEY.namespace)
                case Update(body):
                    return self.world.cluster.update("leases", body, namespace=KEY.namespace)
        except (NotFound, Conflict) as error:
            return error

    def _answered(self, request: _Request, answer: _Answer) -> None:
        if request is not self._request or request.abandoned:
            return
        self._request = None
        chance = self.world.chance.random()
        match request.action, answer:
            case Read(), NotFound():
                self.election.read(None, self.now, chance)
            case _, None | ServerError():
                self.election.failed(self.now, chance)
            case Read(), _:
                self.election.read(answer, self.now, chance)
            case _:
                self.election.stored(answer, self.now, chance)
        self.heard()

    def __repr__(self) -> str:
        return f"<{self.nature.identity} {self.election!r} until={self.election.until:.3f}>"
