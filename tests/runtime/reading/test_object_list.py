"""Reads of a list: pages, retries, expired tokens, models."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import KubeObject, ListRequest
from aioinformer._core.listwatch.reflector_requests import NEWEST
from aioinformer._runtime.reading.object_list import ListOptions, ObjectList, read_list, read_pages
from aioinformer.errors import (
    ConnectionLost,
    Expired,
    Forbidden,
    ModelMismatch,
    ProtocolError,
    ServerFailure,
)
from tests.client.virtual_time import in_virtual_time
from tests.runtime.scripted_source import (
    ScriptedListerWatcher,
    body,
    error_response,
    list_response,
    scripted_lister_watcher,
)


def options(**more: Any) -> ListOptions[Any]:
    return ListOptions[KubeObject](request=ListRequest(NEWEST, 2), **more)


async def read_names(source: ScriptedListerWatcher) -> list[str]:
    listed: ObjectList[KubeObject] = await read_list(source, options())
    return [obj.name for obj in listed]


@pytest.mark.client_go(133)
async def test_a_list_is_read_page_by_page_and_has_the_version_of_its_first_page() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1), body("b", 2), version="10", token="t1"),
        list_response(body("c", 3), version="11"),
    )
    listed: ObjectList[KubeObject] = await read_list(source, options())

    assert [obj.name for obj in listed] == ["a", "b", "c"]
    assert listed.resource_version == "10"
    assert [request.query() for request in source.requests] == [
        {"limit": "2"},
        {"limit": "2", "continue": "t1"},
    ]
    assert (listed[-1].name, [obj.name for obj in listed[:2]]) == ("c", ["a", "b"])


@pytest.mark.client_go(133)
async def test_pages_are_returned_as_they_arrive() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1), token="t1"), list_response(body("b", 2))
    )
    pages = read_pages(source, options())
    first = await anext(pages)

    assert (len(first), first.continue_token, len(source.requests)) == (1, "t1", 1)
    assert [[obj.name for obj in page] async for page in pages] == [["b"]]


@in_virtual_time
async def test_a_page_that_breaks_off_is_requested_again() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1), token="t1"),
        list_response(body("b", 2), error=ConnectionLost("reset", phase="list")),
        error_response(503, "ServiceUnavailable"),
        list_response(body("b", 2)),
    )
    assert await read_names(source) == ["a", "b"]
    assert [request.restart for request in source.requests] == [False, False, True, True]


@in_virtual_time
async def test_each_failure_that_is_followed_by_another_attempt_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = scripted_lister_watcher(
        error_response(503, "ServiceUnavailable"), list_response(body("a", 1))
    )
    assert await read_names(source) == ["a"]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("aioinformer.api", "WARNING")
    assert re.fullmatch(
        r"list of pods: ServerFailure: .*503.*; next attempt in \d\.\d s", record.message
    )


@in_virtual_time
async def test_a_page_that_keeps_failing_is_an_error_after_four_requests() -> None:
    source = scripted_lister_watcher(*[error_response(500, "InternalError")] * 5)
    with pytest.raises(ServerFailure):
        await read_names(source)
    assert len(source.requests) == 4


@in_virtual_time
async def test_a_list_is_repeated_after_the_pause_that_the_server_requests() -> None:
    clock = asyncio.get_running_loop().time
    source = scripted_lister_watcher(
        error_response(429, "TooManyRequests", retry=60.0), list_response(body("a", 1))
    )
    began = clock()
    assert await read_names(source) == ["a"]
    assert clock() - began >= 60


async def test_an_error_that_does_not_pass_is_raised_at_once() -> None:
    source = scripted_lister_watcher(error_response(403, "Forbidden"))
    with pytest.raises(Forbidden):
        await read_names(source)
    assert len(source.requests) == 1


async def test_a_list_whose_token_expires_begins_again_without_pages() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1), token="t1"),
        error_response(410, "Expired"),
        list_response(body("a", 1), body("b", 2), version="20"),
    )
    assert await read_names(source) == ["a", "b"]
    assert source.requests[-1].query() == {}


async def test_pages_whose_token_expires_are_an_error_because_some_were_returned() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1), token="t1"), error_response(410, "Expired")
    )
    pages = read_pages(source, options())
    await anext(pages)
    with pytest.raises(Expired):
        await anext(pages)


async def test_a_token_that_leads_to_a_page_that_was_read_is_an_error() -> None:
    source = scripted_lister_watcher(*[list_response(body("a", 1), token="t1")] * 3)
    with pytest.raises(ProtocolError, match="a continue token leads to a page that was read"):
        await read_names(source)


class Metadata(Struct, frozen=True):
    name: str


class Pod(Struct, frozen=True):
    metadata: Metadata


class Strict(Struct, frozen=True):
    nowhere: str


async def test_objects_are_built_as_a_model() -> None:
    source = scripted_lister_watcher(list_response(body("a", 1)))
    listed: ObjectList[Pod] = await read_list(source, options(model=Pod))

    assert listed[0] == Pod(Metadata("a"))


async def test_an_object_that_does_not_fit_the_model_is_named() -> None:
    source = scripted_lister_watcher(list_response(body("a", 1)))
    with pytest.raises(ModelMismatch, match=r"pods web/a at .*: the object doesn't fit Strict"):
        await read_list(source, options(model=Strict))


async def test_metadata_is_cut_out_of_whole_objects() -> None:
    source = scripted_lister_watcher(list_response(body("a", 1)))
    listed: ObjectList[KubeObject] = await read_list(source, options(metadata_only=True))

    assert set(listed[0]) == {"apiVersion", "kind", "metadata"}
