"""The position of one durable listener."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster
from tests.runtime.informers import pod_informer


def test_a_name_that_the_file_does_not_know_receives_the_restored_state() -> None:
    position = DurablePosition("mail", "everything")

    assert not position.skips_first_state("web", restored=True)
    assert not position.skips_first_state("web", restored=False)


def test_a_known_name_skips_the_restored_state_of_the_scopes_that_it_has_handled() -> None:
    position = DurablePosition("mail", "everything")
    position.known_scopes.add("web")

    assert position.skips_first_state("web", restored=True)
    assert not position.skips_first_state("web", restored=False)  # listed: nobody handled it
    assert not position.skips_first_state("shop", restored=True)


@pytest.mark.parametrize("restored", [False, True])
def test_a_name_that_begins_now_skips_every_first_state(*, restored: bool) -> None:
    assert DurablePosition("mail", "now").skips_first_state("web", restored=restored)


@pytest.mark.parametrize("idle", [False, True])
def test_a_closing_listener_is_reported_once_with_what_it_has_handled(*, idle: bool) -> None:
    position, seen = DurablePosition("mail", "everything"), list[bool]()
    position.on_closing = lambda: seen.append(position.handled)

    position.close(idle=idle)
    position.close(idle=not idle)

    assert seen == [idle]
    assert position.handled is idle


def test_a_listener_that_no_checkpointer_follows_has_handled_nothing() -> None:
    position = DurablePosition("mail", "now")
    position.close(idle=True)

    assert not position.handled
    assert repr(position) == "<DurablePosition mail now>"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"durable": ""}, TypeError, "durable must be a name, not ''"),
        ({"durable": 3}, TypeError, "durable must be a name, not 3"),
        ({"durable": "mail"}, UsageError, "durable='mail' needs a cache file: make the factory"),
    ],
)
def test_a_durable_name_that_can_not_be_kept_is_rejected(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    informer = pod_informer(Cluster())
    with pytest.raises(error, match=text):
        informer.add_handler(lambda event: None, **options)
    with pytest.raises(error, match=text):
        informer.events(**options)


def test_a_beginning_that_there_is_not_is_rejected() -> None:
    with pytest.raises(ValueError, match="'everything' or 'now', not 'yesterday'"):
        pod_informer(Cluster()).events(durable_since=cast("Any", "yesterday"))


def test_a_durable_handler_is_called_for_one_event_at_a_time() -> None:
    position = DurablePosition("mail", "now")

    assert HandlerOptions(position=position, concurrency=1).position is position
    with pytest.raises(UsageError, match=r"concurrency=1.*not 2"):
        HandlerOptions(position=position, concurrency=2)
