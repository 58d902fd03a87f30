"""The registrations of an informer: their number, repeated handlers, and removal after the end."""

from __future__ import annotations

import pytest

from aioinformer import Event
from tests.runtime.informers import cluster_with_pods, pod_informer, running_informer
from tests.runtime.scripted_source import wait_until


@pytest.mark.client_go(58)
def test_the_registrations_are_those_that_were_added_and_not_removed() -> None:
    informer = pod_informer(cluster_with_pods())
    first, second = informer.add_handler(print), informer.add_handler(print)
    assert list(informer.registrations) == [first, second]

    first.remove()
    assert list(informer.registrations) == [second]
    second.remove()
    assert list(informer.registrations) == []


@pytest.mark.client_go(60)
async def test_a_handler_that_is_added_twice_is_registered_twice() -> None:
    calls: list[str] = []

    def record(event: Event) -> None:
        calls.append(event.obj.name)

    cluster = cluster_with_pods("a")
    informer = pod_informer(cluster)
    first, second = informer.add_handler(record), informer.add_handler(record)
    assert first is not second
    async with running_informer(informer):
        await wait_until(lambda: calls == ["a", "a"])

        first.remove()
        cluster.create("pods", {"metadata": {"name": "b"}})
        await second.wait_synced(30)
        await wait_until(lambda: calls == ["a", "a", "b"])


@pytest.mark.client_go(65)
async def test_removing_a_handler_of_an_informer_that_has_ended_is_no_error() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    async with running_informer(informer):
        registration = informer.add_handler(print)

    registration.remove()
    registration.remove()

    assert registration.closed
