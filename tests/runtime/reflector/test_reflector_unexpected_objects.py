"""Objects of another kind or namespace in lists and watches: never cached, always reported."""

from __future__ import annotations

import pytest

from aioinformer import Problem, SharedInformer
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer.errors import UnexpectedObject
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import (
    added,
    body,
    event_line,
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
)

SERVICE = '{"kind":"Service","apiVersion":"v1",' + body("b", 11)[1:]
QUICK = BackoffPolicy(initial=0.01, maximum=0.02)


@pytest.mark.client_go(8)
async def test_a_watch_ignores_an_object_of_another_kind_and_reports_it_once() -> None:
    problems: list[Problem] = []
    source = scripted_lister_watcher(
        list_response(body("a", 3), version="10"),
        watch_response(*[event_line("ADDED", SERVICE)] * 2, added("c", 12), never_ends=True),
    )
    informer = SharedInformer(source, watch_list=False, on_error=problems.append)
    async with running_in_background(informer.run()):
        await wait_until(lambda: informer.health.resource_version == "12")

        assert sorted(obj.name for obj in informer.lister.list()) == ["a", "c"]
        assert informer.health.ignored == 2
        assert "2 events of other kinds or namespaces ignored" in str(informer.health)
    assert [(each.phase, each.cause) for each in problems] == [("watch", "ignored")]
    assert isinstance(problems[0].error, UnexpectedObject)


async def test_a_list_of_another_kind_does_not_empty_the_cache() -> None:
    problems: list[Problem] = []
    source = scripted_lister_watcher(
        list_response(SERVICE, version="10"),
        list_response(body("a", 3), version="10"),
        watch_response(never_ends=True),
    )
    informer = SharedInformer(source, watch_list=False, backoff=QUICK, on_error=problems.append)
    async with running_in_background(informer.run()):
        await informer.wait_synced(30)

        assert [obj.name for obj in informer.lister.list()] == ["a"]
    assert [type(each.error) for each in problems] == [UnexpectedObject]
