"""The checks of probes: the informers that have ended, and those that should not be read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from aioinformer import Health
from aioinformer._runtime.reporting.health import InformerState
from aioinformer._runtime.reporting.readiness import FRESH, alive, ready
from aioinformer.errors import ConnectionFailed


@dataclass(frozen=True, slots=True)
class ReportedInformer:
    """A name with a health, which is all that the checks read."""

    name: str
    health: Health


def informer(
    name: str = "pods",
    state: InformerState = "watching",
    *,
    synced: bool = True,
    fresh: float | None = 1.0,
    objects: int = 3,
    rejected: tuple[str, ...] = (),
    error: Exception | None = None,
) -> ReportedInformer:
    return ReportedInformer(
        name,
        Health(
            state=state,
            since=2.0,
            error=error,
            retry_in=None,
            synced=synced,
            resource_version="7" if synced else "",
            objects=objects,
            rejected=rejected,
            rejections=len(rejected),
            blocked_by=(),
            fresh=fresh,
        ),
    )


def test_informers_that_read_the_newest_state_are_alive_and_ready() -> None:
    informers = [informer("pods"), informer("nodes", fresh=FRESH)]

    assert alive(informers) == ready(informers) == {}


@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_an_informer_that_has_ended_is_neither_alive_nor_ready(state: InformerState) -> None:
    ended = informer("nodes", state, error=ConnectionFailed("no socket"))

    for reasons in (alive([informer(), ended]), ready([informer(), ended])):
        assert [*reasons] == ["nodes"]
        assert reasons["nodes"].startswith(f"{state} for 2.0 s")
        assert "no socket" in reasons["nodes"]


def test_an_informer_that_can_not_reach_its_server_is_alive_and_not_ready() -> None:
    waiting = informer(state="waiting", synced=False, error=ConnectionFailed("refused"))

    assert alive([waiting]) == {}
    assert ready([waiting])["pods"].startswith("not synced: waiting")


def test_an_informer_whose_objects_were_all_rejected_is_not_ready() -> None:
    nothing = informer(objects=0, rejected=("web/a", "web/b"))
    something = informer("nodes", objects=1, rejected=("web/a",))

    assert [*ready([nothing, something])] == ["pods"]
    assert ready([nothing])["pods"].startswith("nothing is cached: ")


@pytest.mark.parametrize("fresh", [None, FRESH + 0.1])
def test_a_cache_that_is_not_known_to_be_up_to_date_is_not_ready(fresh: float | None) -> None:
    stale = informer(fresh=fresh)

    assert ready([stale])["pods"].startswith("not known to be up to date: ")
    assert ready([stale], within=None) == {}


def test_the_program_chooses_the_age_above_which_a_cache_is_not_ready() -> None:
    assert ready([informer(fresh=3.0)], within=3.0) == {}
    assert [*ready([informer(fresh=3.1)], within=3.0)] == ["pods"]
