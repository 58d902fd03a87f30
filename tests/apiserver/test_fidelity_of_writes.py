"""Writes to the embedded server and to the real one, one after the other: the same answers.

Status, reason, message, details, and the object that comes of it, with the order of its keys. Of
applies managedFields are compared as well, which the embedded server keeps from the first one on.
What the real one answers is kept in ``recordings/writes.jsonl``, so that the embedded server is
held to it where there is no real one (``tests/testing/test_answers_to_writes.py``); here is seen
that it is still so.
"""

from collections.abc import AsyncIterator

import pytest

from aioinformer import Resource
from aioinformer.testing import Features
from tests.apiserver.changes import APPLIES, GIZMO_CRD, WRITTEN, Change
from tests.apiserver.process import ApiServerProcess, install_crd
from tests.apiserver.twins import Seen, Twins, twins
from tests.testing.answers import Answer, recorded_answers

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def pair(api_server: ApiServerProcess) -> AsyncIterator[Twins]:
    """Both servers, with widgets, and with gizmos that have a status subresource."""
    await install_crd(api_server, GIZMO_CRD)
    async with twins(api_server, Features(minor=37)) as pair:
        pair.cluster.add_resource(Resource("example.com", "v1", "gizmos", "Gizmo"), status=True)
        yield pair


async def answers(
    pair: Twins, changes: list[Change], *, managers: bool = False
) -> list[tuple[Change, Seen, Seen]]:
    """What either answers."""
    return [
        (
            change,
            await pair.real.send(*change, managers=managers),
            await pair.ours.send(*change, managers=managers),
        )
        for change in changes
    ]


async def test_writes_are_answered_as_there_and_as_recorded(pair: Twins) -> None:
    found = {what: await answers(pair, changes) for what, changes in WRITTEN.items()}
    found["an apply"] = await answers(pair, APPLIES, managers=True)
    for what, series in found.items():
        for change, real, ours in series:
            assert (real.status, real.lines) == (ours.status, ours.lines), (what, change)
    real_ones = {
        what: [Answer(*change, real.status, "".join(real.lines)) for change, real, _ in series]
        for what, series in found.items()
    }
    assert real_ones == recorded_answers()
