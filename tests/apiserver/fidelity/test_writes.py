"""Writes to the embedded server and to the real one, one after the other: the same answers.

Status, reason, message, details, and the object that comes of it, with the order of its keys. Of
applies managedFields are compared as well, which the embedded server keeps from the first one on.
What the real one answers is kept in ``recordings/writes.jsonl``, so that the embedded server is
held to it where there is no real one (``tests/testing/server/test_server_write_fidelity.py``).
These tests compare the recording with the real server.
"""

from collections.abc import AsyncIterator

import pytest

from aioinformer import Resource
from aioinformer.testing import Features
from tests.apiserver.fidelity.server_pair import NormalizedResponse, ServerPair, server_pair
from tests.apiserver.fidelity.write_requests import (
    APPLIES,
    GIZMO_CRD,
    WRITES_BY_NAME,
    WRONG_TYPES,
    ZONE_CRD,
    WriteRequest,
)
from tests.apiserver.server.server_process import ApiServerProcess, install_crd
from tests.testing.recorded_writes import RecordedWrite, read_recorded_writes

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def pair(api_server: ApiServerProcess) -> AsyncIterator[ServerPair]:
    """Both servers, with widgets, and with gizmos and zones, which have a status subresource."""
    await install_crd(api_server, GIZMO_CRD)
    await install_crd(api_server, ZONE_CRD)
    async with server_pair(api_server, Features(minor=37, garbage_collection=False)) as pair:
        pair.cluster.add_resource(Resource("example.com", "v1", "gizmos", "Gizmo"), status=True)
        zones = Resource("example.com", "v1", "zones", "Zone", namespaced=False)
        pair.cluster.add_resource(zones, status=True)
        yield pair


async def answers(
    pair: ServerPair, changes: list[WriteRequest], *, managers: bool = False
) -> list[tuple[WriteRequest, NormalizedResponse, NormalizedResponse]]:
    """Return the responses of both servers."""
    return [
        (
            change,
            await pair.real.send_raw(*change, managers=managers),
            await pair.embedded.send_raw(*change, managers=managers),
        )
        for change in changes
    ]


async def test_writes_are_answered_as_on_the_real_server_and_as_recorded(pair: ServerPair) -> None:
    found = {what: await answers(pair, changes) for what, changes in WRITES_BY_NAME.items()}
    found["an apply"] = await answers(pair, APPLIES, managers=True)
    for what, series in found.items():
        for change, real, ours in series:
            assert (real.status, real.lines) == (ours.status, ours.lines), (what, change)
    real_ones = {
        what: [
            RecordedWrite(*change, real.status, "".join(real.lines)) for change, real, _ in series
        ]
        for what, series in found.items()
    }
    assert real_ones == read_recorded_writes()


async def test_wrong_types_have_the_codes_of_the_real_server(pair: ServerPair) -> None:
    found = await answers(pair, WRONG_TYPES)
    codes = [(change, real.status, ours.status) for change, real, ours in found]
    assert [each for each in codes if each[1] != each[2]] == []
    assert {real for _, real, _ in codes} == {201, 400, 422}
