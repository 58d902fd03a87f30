"""Elections in simulated time: candidates with clocks of their own, pauses, and a bad network.

Each candidate is an ``Election`` and as much of a shell as it needs; the Lease is in a
``LeaseStore``.
All that happens is drawn from a seed. Requests and answers are slow or lost, the server fails
before or after it has carried out a request, and another program changes the Lease's labels.
Candidates are killed and start again, are disconnected, and stop for a while, most of all as their
lease runs out. Clocks are hours apart and run at different rates, and a body takes time to end. A
pause, that time, and the difference of the clocks stay just below the margin that the times of the
leader allow: no two bodies may ever run at once.
"""

from __future__ import annotations

import datetime as dt
from random import Random

from aioinformer import ObjectKey
from aioinformer.leaderelection.state.election import (
    Election,
    ElectionEnded,
    LeaseLost,
    SleepUntil,
)
from aioinformer.leaderelection.state.lease import Fencing
from tests.simulation.leases.candidate_specs import CandidateSpec, draw_candidates, draw_duel
from tests.simulation.leases.lease_store import Answer, LeaseRequest, LeaseStore, record_answer
from tests.simulation.leases.virtual_time import Process, VirtualTime

KEY = ObjectKey("web", "controller")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DURATION = 150.0
"""Seconds of a history."""
CALM_SECONDS = 50.0
"""Seconds at its end in which no fault begins, and a candidate must come to lead."""


class LeadershipOverlap(AssertionError):
    """Two bodies ran at once, or a later term had no greater number."""


class ElectionWorld:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.random = chance = Random(seed)
        self.store = LeaseStore()
        self.running: list[Candidate] = []
        self.terms: list[Fencing] = []
        self.losses = 0
        self.releases = 0
        self.duel = chance.random() < 0.5
        self.time = VirtualTime(
            chance,
            duration=DURATION,
            calm_seconds=CALM_SECONDS,
            failure_rate=0.0 if self.duel else chance.choice([0.0, 0.05, 0.2, 0.5]),
        )
        draw = draw_duel if self.duel else draw_candidates
        self.candidates = [Candidate(self, nature) for nature in draw(chance)]

    def run(self) -> None:
        """Run the whole history."""
        schedule, chance = self.time.schedule, self.random
        for candidate in self.candidates:
            schedule(chance.uniform(0, 5), candidate.start)
            if not self.duel:
                schedule(chance.uniform(0, 20), candidate.pause)
            schedule(chance.uniform(0, 20), candidate.change_latency)
        schedule(chance.uniform(5, 30), self._change_labels)
        self.time.run()

    @property
    def now(self) -> float:
        """The time of the history."""
        return self.time.now

    def start_body(self, candidate: Candidate, fencing: Fencing) -> None:
        """Record that a body begins to run."""
        self.running.append(candidate)
        if len(self.running) > 1:
            raise LeadershipOverlap(f"at {self.now:.3f} s: {self.running}")
        if self.terms and (fencing <= self.terms[-1] or fencing.transitions < len(self.terms)):
            raise LeadershipOverlap(f"at {self.now:.3f} s: term {fencing} after {self.terms[-1]}")
        self.terms.append(fencing)

    def end_body(self, candidate: Candidate) -> None:
        """Record that the body has ended."""
        self.running.remove(candidate)

    def _change_labels(self) -> None:
        lease = self.store.get(KEY.name)
        if isinstance(lease, dict):  # a candidate has created the Lease
            labels = {"labels": {"touched": str(int(self.now))}}
            self.store.put(lease | {"metadata": lease["metadata"] | labels}, creates=False)
        self.time.schedule(self.now + self.random.uniform(5, 30), self._change_labels)


class Candidate:
    """A process that takes part in an election, and its body, which runs while it leads."""

    def __init__(self, world: ElectionWorld, spec: CandidateSpec) -> None:
        self.world = world
        self.spec = spec
        self.process = Process(world.time, rate=spec.clock_rate, offset=1000.0)
        self.process.start()
        self._time = world.time
        self._chance = world.random
        self._request: LeaseRequest | None = None
        """The request whose answer the candidate waits for."""
        self._next_pause_at = 0.0
        self._unreachable_until = 0.0
        self._delays = (0.0, 0.0)
        self._pauses_on_loss = False
        self._body_running = False
        self._body_ending = False
        self.election = self._make_election()

    def _make_election(self) -> Election:
        return Election(KEY, identity=self.spec.identity, times=self.spec.times)

    # -- time ----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The time of the candidate's clock."""
        return self.process.now

    @property
    def wall(self) -> dt.datetime:
        """The date that the candidate's clock shows."""
        return START + dt.timedelta(seconds=self.now + self.spec.date_offset)

    def pause(self) -> None:
        """Stop the process for a while, now and then."""
        self._start_pause()
        self._time.schedule(self._time.now + self._chance.uniform(1, 40), self.pause)

    def change_latency(self) -> None:
        """Change the time that requests and answers take."""
        chance = self._chance
        there, back = chance.choice([0.01, 0.3, 2.0]), chance.choice([0.01, 0.3, 2.0, 4.0])
        if self.world.duel:
            there, back = 0.01, back if self.spec.gets_cut_off else 0.01
        self._delays = there, back
        self._time.schedule(self._time.now + chance.uniform(5, 15), self.cut_off)

    def cut_off(self) -> None:
        """Keep requests from the server for a while; the process may stop as its lease runs out."""
        chance = self._chance
        if not self._time.calm and self.spec.gets_cut_off:
            self._unreachable_until = self._time.now + chance.uniform(5, 40)
            self._pauses_on_loss = self.world.duel or chance.random() < 0.7
        self._time.schedule(self._unreachable_until + chance.uniform(1, 30), self.change_latency)

    def _start_pause(self) -> bool:
        """Stop the process, unless one body would end in this pause and in the one before."""
        now = self._time.now
        if self._time.calm or now < self._next_pause_at:
            return False
        self.process.paused_until = now + self.spec.max_pause * self._draw_share()
        self._next_pause_at = self.process.paused_until + self.spec.max_shutdown + 0.1
        return True

    def _draw_share(self) -> float:
        """Return a share of a time, often all of it."""
        certain = self.world.duel or self._chance.random() < 0.5
        return 1.0 if certain else self._chance.random()

    # -- the shell -----------------------------------------------------------------------------

    def start(self) -> None:
        """Run for a term, unless the candidate does."""
        if self.election.phase in ("idle", "lost", "ended"):
            self.election.seek(self.now)
            self.step()

    def step(self) -> None:
        """Take the next action of the election, unless a request is under way."""
        if self._request is not None:
            return
        match self.election.step(self.now, self.wall):
            case SleepUntil(until):
                self.process.schedule(until, self.step)
            case LeaseLost():
                self.world.losses += 1
                self.cancel_body()
            case ElectionEnded(released):
                self.world.releases += released
                self.process.schedule(self.now + self._chance.uniform(0, 5), self.start)
            case action:
                self._send(action)

    def cancel_body(self) -> None:
        """End the body; the candidate runs again when the body has ended."""
        if (
            self._pauses_on_loss
            and self._body_running
            and not self._body_ending
            and self._start_pause()
        ):
            self._pauses_on_loss = False  # the pause begins just before the body ends
            self.process.schedule(self.now, self.cancel_body)
        elif self._body_running and not self._body_ending:
            self._body_ending = True
            self.process.schedule(self.now + self._draw_shutdown(), self.on_body_ended)
        elif not self._body_running:
            self.process.schedule(self.now, self.start)

    def _draw_shutdown(self) -> float:
        return self.spec.max_shutdown * self._draw_share() * self.spec.clock_rate

    def check_deadline(self) -> None:
        """End the body if the time to lead has passed."""
        self.election.check_deadline(self.now)
        if self._body_running and not self.election.leads(self.now):
            self.cancel_body()
        elif self._body_running:
            self.process.schedule(self.election.leads_until, self.check_deadline)

    def handle_response(self) -> None:
        """Start the body if the candidate leads since this answer; take the next action."""
        if self.election.leads(self.now) and not self._body_running:
            fencing = self.election.fencing
            assert fencing is not None
            self.world.start_body(self, fencing)
            self._body_running = True
            self.process.schedule(self.election.leads_until, self.check_deadline)
            self.process.schedule(
                self.now + self._chance.uniform(0, self.spec.max_term), self.finish_body
            )
            if not self.world.duel and self._chance.random() < 0.2:
                self.process.schedule(self.now + self._chance.uniform(0, 30), self.kill)
        self.step()

    def finish_body(self) -> None:
        """Let the body end by itself. The lease is renewed until then."""
        if self._body_running and not self._body_ending and not self._time.calm:
            self._body_ending = True
            self.process.schedule(self.now + self._draw_shutdown(), self.on_body_ended)

    def on_body_ended(self) -> None:
        """Record the end of the body, and release the lease."""
        self.world.end_body(self)
        self._body_running = self._body_ending = False
        self.release()

    def release(self) -> None:
        """Release the lease if the candidate holds it."""
        self._request = None  # the candidate gives up on it
        self.election.release(self.now)
        self.step()

    def kill(self) -> None:
        """Kill the process; it starts again later without its memory."""
        if self._time.calm:
            return
        if self._body_running:
            self.world.end_body(self)
        self.process.start()
        self._body_running = self._body_ending = False
        self._request, self.election = None, self._make_election()
        self.process.schedule(self.now + self._chance.uniform(0, 20), self.start)

    # -- the network ---------------------------------------------------------------------------

    @property
    def request_timeout(self) -> float:
        """Seconds that a request may take."""
        return self.election.request_timeout(self.now)

    def _send(self, request: LeaseRequest) -> None:
        self._request = request
        self.process.schedule(
            self.now + self.request_timeout, lambda: self._on_response(request, None)
        )
        if not self._time.draw_failure() and self._time.now >= self._unreachable_until:
            self._time.schedule(
                self._time.now + self._draw_latency(0), lambda: self._on_request(request)
            )

    def _draw_latency(self, back: int) -> float:
        """Draw the seconds on the way; some messages arrive after their sender has given up."""
        delay = (0.1 if self._time.calm else self._delays[back]) * self._chance.random()
        return delay + (self._chance.uniform(0, 20) if self._time.draw_failure() else 0.0)

    def _on_request(self, request: LeaseRequest) -> None:
        """Carry out a request at the server, also if its sender has given up on it."""
        if self._time.draw_failure():
            self._respond(request, None)  # a 5xx, and the request was not carried out
            return
        answer = self.world.store.carry_out(request, KEY.name)
        if self._time.draw_failure():
            self._respond(request, None)  # a 5xx, but the request was carried out
        elif not self._time.draw_failure():
            self._respond(request, answer)

    def _respond(self, request: LeaseRequest, answer: Answer) -> None:
        delay = self._draw_latency(1)
        self.process.schedule_in(delay, lambda: self._on_response(request, answer))

    def _on_response(self, request: LeaseRequest, answer: Answer) -> None:
        if request is not self._request:
            return  # the candidate has given up on it
        self._request = None
        record_answer(self.election, request, answer, self.now, self._chance.random())
        self.handle_response()

    def __repr__(self) -> str:
        return f"<{self.spec.identity} {self.election!r} until={self.election.leads_until:.3f}>"
