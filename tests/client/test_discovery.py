"""Which documents are asked for, and how long they are used."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from aioinformer._client.discovery import AGGREGATED, Discovery
from aioinformer.errors import (
    Forbidden,
    ProtocolError,
    Status,
    UnknownResource,
    server_error,
)
from tests.client.recordings import recorded

CORE = recorded("01-core-v1-resources").body
GROUPS = recorded("02-aggregated-discovery").body
APPS = recorded("03-group-version-resources").body
EMPTY = b'{"kind":"APIGroupDiscoveryList","items":[]}'
VERSIONS = b'{"kind":"APIVersions","versions":["v1"]}'


class Documents:
    """What a server has: bodies by path, or the code of a refusal."""

    def __init__(self, served: Mapping[str, bytes | int]) -> None:
        self.served = dict(served)
        self.asked: list[str] = []

    async def __call__(self, path: str, accept: str) -> bytes:
        assert (accept == AGGREGATED) is (path in ("/api", "/apis"))
        self.asked.append(path)
        await asyncio.sleep(0)
        document = self.served.get(path, 404)
        if isinstance(document, int):
            raise server_error(Status(document), phase="discovery")
        return document


def modern() -> Documents:
    return Documents({"/api": EMPTY, "/apis": GROUPS})


def legacy(**more: bytes | int) -> Documents:
    groups = (
        b'{"kind":"APIGroupList","groups":['
        b'{"name":"metrics.io","versions":[{"groupVersion":"metrics.io/v1","version":"v1"}]},'
        b'{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}'
    )
    served = {"/api": VERSIONS, "/api/v1": CORE, "/apis": groups, "/apis/apps/v1": APPS}
    return Documents({**served, "/apis/metrics.io/v1": b'{"resources":[]}', **more})


def standalone() -> Documents:
    """An apiextensions-apiserver on its own: groups, and no list of them."""
    group = b'{"name":"example.com","versions":[{"groupVersion":"example.com/v1"}]}'
    widgets = (
        b'{"resources":[{"name":"widgets","singularName":"widget","namespaced":true,'
        b'"kind":"Widget","shortNames":["wd"]}]}'
    )
    return Documents({"/apis/example.com": group, "/apis/example.com/v1": widgets})


async def test_two_aggregated_documents_describe_everything() -> None:
    documents = modern()

    found = await Discovery(documents).find("deploy")

    assert found.plural == "deployments"
    assert documents.asked == ["/api", "/apis"]


async def test_the_answer_is_used_again() -> None:
    documents = modern()
    discovery = Discovery(documents)

    await discovery.find("deploy")
    assert (await discovery.find("jobs")).group == "batch"

    assert documents.asked == ["/api", "/apis"]


async def test_a_name_that_is_missing_is_asked_for_once_more() -> None:
    """The custom resource may have been installed a second ago."""
    documents = modern()
    discovery = Discovery(documents)
    await discovery.find("deploy")
    documents.served["/apis"] = GROUPS.replace(b'"deployments"', b'"widgets"')

    assert (await discovery.find("widgets")).plural == "widgets"

    assert documents.asked == ["/api", "/apis"] * 2


async def test_a_name_that_stays_missing_is_unknown_after_one_question() -> None:
    documents = modern()

    with pytest.raises(UnknownResource, match="did you mean"):
        await Discovery(documents).find("deploymets")

    assert documents.asked == ["/api", "/apis"]


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


def test_an_answer_is_used_for_ten_minutes() -> None:
    documents, loop = modern(), SkippingLoop()

    async def ask() -> None:
        discovery = Discovery(documents)
        await discovery.find("deploy")
        loop.skipped = 590
        await discovery.find("deploy")
        assert documents.asked == ["/api", "/apis"]
        loop.skipped = 610
        await discovery.find("deploy")
        assert documents.asked == ["/api", "/apis"] * 2

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(ask())


async def test_names_asked_for_at_once_are_one_question() -> None:
    documents = modern()
    discovery = Discovery(documents)

    await asyncio.gather(*(discovery.find(name) for name in ("deploy", "jobs", "leases")))

    assert documents.asked == ["/api", "/apis"]


async def test_a_failed_question_is_asked_again_the_next_time() -> None:
    documents = modern()
    discovery = Discovery(documents)
    documents.served["/apis"] = 403

    with pytest.raises(Forbidden):
        await discovery.find("deploy")
    documents.served["/apis"] = GROUPS

    assert (await discovery.find("deploy")).plural == "deployments"


async def test_an_older_server_is_asked_group_by_group() -> None:
    documents = legacy()

    assert (await Discovery(documents).find("sts")).plural == "statefulsets"
    assert documents.asked == [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/metrics.io/v1",
        "/apis/apps/v1",
    ]


async def test_a_group_that_is_down_does_not_hide_the_others() -> None:
    documents = legacy(**{"/apis/metrics.io/v1": 503})
    discovery = Discovery(documents)

    assert (await discovery.find("sts")).plural == "statefulsets"
    with pytest.raises(UnknownResource, match=r"did not describe metrics\.io/v1"):
        await discovery.find("podmetrics")


async def test_a_forbidden_group_is_an_error() -> None:
    with pytest.raises(Forbidden):
        await Discovery(legacy(**{"/apis/apps/v1": 403})).find("sts")


@pytest.mark.parametrize("name", ["widgets.example.com", "wd.example.com", "Widget.v1.example.com"])
async def test_a_server_without_a_list_of_groups_is_asked_for_the_group_named(name: str) -> None:
    found = await Discovery(standalone()).find(name)

    assert (found.group, found.version, found.plural) == ("example.com", "v1", "widgets")


async def test_a_server_without_a_list_of_groups_knows_no_bare_names() -> None:
    documents = standalone()

    with pytest.raises(UnknownResource, match=r"no list of its groups, so ask for widgets\.GROUP"):
        await Discovery(documents).find("widgets")

    assert documents.asked == ["/api", "/apis"]


@pytest.mark.parametrize("name", ["widgets..", "widgets.a/../b", "widgets.%2e"])
async def test_a_name_whose_group_no_url_can_name_is_unknown(name: str) -> None:
    documents = standalone()

    with pytest.raises(UnknownResource):
        await Discovery(documents).find(name)
    assert not any(".." in path or "%" in path for path in documents.asked)


async def test_a_document_that_makes_no_sense_is_the_servers_fault() -> None:
    with pytest.raises(ProtocolError, match="/apis is no discovery document"):
        await Discovery(Documents({"/apis": b"<html>"})).find("pods")


async def test_a_discovery_shows_what_it_knows() -> None:
    discovery = Discovery(standalone())
    assert repr(discovery) == "<Discovery <Catalogue of 0 resources>>"
    await discovery.find("widgets.example.com")

    assert repr(discovery) == "<Discovery <Catalogue of 1 resources>>"
