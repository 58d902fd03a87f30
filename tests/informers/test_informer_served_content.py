"""Content that a server changes without a write, in a whole informer."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Event, ObjectKey, SharedInformer, Updated
from aioinformer.testing import Cluster, ClusterSource
from tests.core.builders import PODS
from tests.runtime.informers import FAST_BACKOFF, running_informer
from tests.runtime.scripted_source import wait_until


def with_default(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"spec": body["spec"] | {"size": "XL"}}


@pytest.mark.parametrize("watch_list", [True, False])
async def test_other_content_under_the_same_versions_is_delivered_as_updates(
    watch_list: bool,
) -> None:
    cluster, events = Cluster(), list[Event]()
    for name in "ab":
        cluster.create("pods", {"metadata": {"name": name}, "spec": {"nodeName": name}})
    source = ClusterSource(cluster).lister_watcher(PODS)
    informer = SharedInformer(source, watch_list=watch_list, backoff=FAST_BACKOFF)
    informer.add_handler(events.append)
    async with running_informer(informer):
        await wait_until(lambda: len(events) == 2)
        before = [obj.resource_version for obj in informer.lister.list()]
        cluster.convert_resource("pods", with_default)
        await wait_until(lambda: len(events) == 4)

        assert [obj.resource_version for obj in informer.lister.list()] == before
        for event in events[2:]:
            assert isinstance(event, Updated)
            assert "size" not in event.old["spec"]
            assert event.new["spec"]["size"] == "XL"
            assert informer.lister[event.key] is event.new
        kept = informer.lister.list()
        cluster.convert_resource("pods", with_default)  # ends the watches, and changes nothing
        cluster.create("pods", {"metadata": {"name": "c"}, "spec": {}})
        await wait_until(lambda: len(informer.lister.list()) == 3)

        assert [obj for obj in informer.lister.list() if obj.name != "c"] == kept
        await wait_until(lambda: len(events) == 5)
        assert await informer.verify(contents=True, timeout=5)


async def test_a_verification_compares_contents_unless_this_is_switched_off() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": {}})
    source = ClusterSource(cluster).lister_watcher(PODS)
    async with running_informer(SharedInformer(source, backoff=FAST_BACKOFF)) as informer:
        before = informer.health.verified
        assert await informer.verify(timeout=5)
        assert (before is None, informer.health.verified is None) == (True, False)
        cluster.convert_resource("pods", with_default, end_watches=False)

        found = await informer.verify(timeout=5)
        assert dict(found.differences) == {ObjectKey("default", "a"): "content"}
        assert await informer.verify(contents=False, timeout=5)


async def test_a_verification_repairs_differences_and_delivers_them() -> None:
    cluster, events = Cluster(), list[Event]()
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": {}})
    source = ClusterSource(cluster).lister_watcher(PODS)
    informer = SharedInformer(source, backoff=FAST_BACKOFF)
    informer.add_handler(events.append)
    async with running_informer(informer):
        await wait_until(lambda: len(events) == 1)
        cluster.convert_resource("pods", with_default, end_watches=False)
        version = informer.health.resource_version

        found = await informer.verify(repair=True, timeout=5)
        assert (len(found.differences), found.repaired) == (1, 1)
        assert "1 repaired" in str(found)
        assert informer.lister["default/a"]["spec"] == {"size": "XL"}
        assert informer.health.resource_version == version
        assert (informer.health.differences, informer.health.repaired) == (0, 1)
        assert await informer.verify(timeout=5)
        await wait_until(lambda: len(events) == 2)
    assert isinstance(events[1], Updated)
