"""A definition that is created over HTTP: the embedded server beside the real one."""

import asyncio
from operator import itemgetter
from typing import Any, TypeAlias

import aiohttp
import msgspec
import pytest

from aioinformer.testing import Features
from tests.apiserver.fidelity.definition_requests import (
    BAD_DEFINITIONS,
    BODIES,
    DEFINITIONS,
    DISCOVERY,
    FIELD_WRITES,
    SELECTIONS,
    SIZE_CRD,
    SIZES,
    WRITES,
)
from tests.apiserver.fidelity.read_requests import TABLE
from tests.apiserver.fidelity.server_pair import NormalizedResponse, server_pair
from tests.apiserver.fidelity.write_requests import JSON, WriteRequest
from tests.apiserver.server.server_process import ApiServerProcess, install_crd, wait_until

pytestmark = pytest.mark.apiserver


async def test_a_defined_resource_is_served_as_on_the_real_server(
    api_server: ApiServerProcess,
) -> None:
    await install_crd(api_server, SIZE_CRD)
    different: dict[str, tuple[NormalizedResponse, NormalizedResponse]] = {}

    def compare(what: str, real: NormalizedResponse, ours: NormalizedResponse) -> None:
        if (real.status, real.lines) != (ours.status, ours.lines):
            different[what] = real, ours

    async def is_discovered_equally() -> bool:
        real, ours = [await twin.send_raw(*DISCOVERY) for twin in pair.both]
        return real.status == ours.status == 200 and _by_name(real) == _by_name(ours)

    async with server_pair(api_server, Features(minor=37, garbage_collection=False)) as pair:
        await pair.embedded.write("POST", DEFINITIONS, SIZE_CRD)
        for body in BODIES:
            text = msgspec.json.encode(body).decode()
            answers = [await twin.send_raw("POST", SIZES, text, JSON) for twin in pair.both]
            compare(text, *answers)
        for request in (*WRITES, *SELECTIONS):
            answers = [await twin.send_raw(*request) for twin in pair.both]
            compare(str(request), *answers)
        async with asyncio.timeout(10):
            await wait_until(is_discovered_equally)
        compare("a table", *await pair.get(SIZES, {"Accept": TABLE}))
    assert not different


def _by_name(discovered: NormalizedResponse) -> list[Any]:
    """Return the resources by name: a server writes those of different definitions in any order."""
    (text,) = discovered.lines
    return sorted(msgspec.json.decode(text)["resources"], key=itemgetter("name"))


async def test_unknown_and_duplicate_fields_are_reported_as_on_the_real_server(
    api_server: ApiServerProcess,
) -> None:
    await install_crd(api_server, SIZE_CRD)
    different: list[tuple[WriteRequest, Answer, Answer]] = []
    async with server_pair(api_server, Features(minor=37, garbage_collection=False)) as pair:
        await pair.embedded.write("POST", DEFINITIONS, SIZE_CRD)
        for write in FIELD_WRITES:
            real, ours = [await send(twin.http, write) for twin in pair.both]
            if real != ours:
                different.append((write, real, ours))
    assert not different


async def test_bad_definitions_have_the_codes_of_the_real_server(
    api_server: ApiServerProcess,
) -> None:
    """The texts are those of decoders and of checks that name more causes there."""
    async with server_pair(api_server, Features(minor=37, garbage_collection=False)) as pair:
        found = [
            (request, *[(await twin.send_raw(*request)).status for twin in pair.both])
            for request in BAD_DEFINITIONS
        ]
    assert [each for each in found if each[1] != each[2]] == []
    assert {real for _, real, _ in found} == {400, 422}


async def test_a_definition_is_updated_in_its_version_alone_as_on_the_real_server(
    api_server: ApiServerProcess,
) -> None:
    await install_crd(api_server, SIZE_CRD)
    text = msgspec.json.encode(SIZE_CRD).decode()
    async with server_pair(api_server, Features(minor=37, garbage_collection=False)) as pair:
        await pair.embedded.write("POST", DEFINITIONS, SIZE_CRD)
        for path in (f"{DEFINITIONS}/sizes.example.com", f"{DEFINITIONS}/nope.example.com"):
            real, ours = [await twin.send_raw("PUT", path, text, JSON) for twin in pair.both]
            assert (real.status, real.lines) == (ours.status, ours.lines)
            assert real.status in (400, 422)


Answer: TypeAlias = tuple[int, list[str], list[str]]
"""The status, the warnings, and the lines of the error, which a real server writes in any order."""


async def send(http: aiohttp.ClientSession, write: WriteRequest) -> Answer:
    headers = {"Content-Type": write.kind}
    async with http.request(write.method, write.path, data=write.body, headers=headers) as response:
        lines = str((await response.json()).get("message", "")).splitlines()
        return response.status, response.headers.getall("Warning", []), sorted(lines)
