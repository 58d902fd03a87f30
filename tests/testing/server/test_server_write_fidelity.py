"""The embedded server's answers to writes beside those of the real one, as they were recorded.

One test a series: the writes of one go to the same objects, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import pytest

from aioinformer import Resource
from aioinformer.errors import ServerError
from aioinformer.testing import Cluster
from aioinformer.testing.server.objects import Asked, answer
from aioinformer.testing.wire.encoding import document_bytes
from aioinformer.testing.wire.statuses import document
from aioinformer.testing.wire.urls import Target
from tests.apiserver.twins import without_chance
from tests.testing.answers import Answer, recorded_answers

SERIES: Mapping[str, list[Answer]] = recorded_answers()


def asked(cluster: Cluster, write: Answer, version: str) -> tuple[int, str]:
    """The status and the body that the embedded server answers."""
    url = urlsplit(write.path)
    query = dict(parse_qsl(url.query))
    body = write.body.replace("{version}", version).encode()
    try:
        target = Target.parse(url.path, cluster.resources, cluster.with_status)
        done = answer(cluster, Asked(write.method, target, query, write.kind, body))
    except ServerError as error:
        if not error.status.reason and error.status.code == 404:
            return 404, f"{error.status.message}\n"
        return error.status.code, document_bytes(document(error.status)).decode()
    return done.status, done.raw.decode()


@pytest.mark.parametrize("what", SERIES)
def test_writes_are_answered_as_by_the_real_server(what: str) -> None:
    cluster, version = Cluster(), ""
    cluster.add_resource(Resource("example.com", "v1", "widgets", "Widget"))
    cluster.add_resource(Resource("example.com", "v1", "gizmos", "Gizmo"), status=True)
    for write in SERIES[what]:
        status, text = asked(cluster, write, version)
        if found := re.search(r'"resourceVersion":"([0-9]+)"', text):
            version = found[1]
        shown = without_chance(text, managers=what == "an apply")
        assert (status, shown) == (write.status, write.answer), write


def test_every_kind_of_write_was_recorded() -> None:
    assert {"the status", "a JSON patch", "a merge patch", "a deletion", "an apply"} == set(SERIES)
    assert all(len(series) > 15 for series in SERIES.values())
