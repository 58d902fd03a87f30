"""Fidelity of writes: the embedded server's answers are the recorded ones of the real server.

Each test sends one series, since the writes of a series depend on each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import pytest

from aioinformer import Resource
from aioinformer.errors import ServerError
from aioinformer.testing import Cluster, Features
from aioinformer.testing.server.object_requests import ObjectRequest
from aioinformer.testing.server.objects import handle_request
from aioinformer.testing.wire.encoding import encode_document
from aioinformer.testing.wire.statuses import status_document
from aioinformer.testing.wire.urls import ResourcePath
from tests.apiserver.fidelity.server_pair import normalize_line
from tests.testing.recorded_writes import RecordedWrite, read_recorded_writes

SERIES: Mapping[str, list[RecordedWrite]] = read_recorded_writes()


def send(cluster: Cluster, write: RecordedWrite, version: str) -> tuple[int, str]:
    """Send a write to the embedded server, and return the status and the body of the answer."""
    url = urlsplit(write.path)
    query = dict(parse_qsl(url.query))
    body = write.body.replace("{version}", version).encode()
    try:
        path = ResourcePath.parse(url.path, cluster.served)
        response = handle_request(
            cluster, ObjectRequest(write.method, path, query, write.kind, body)
        )
    except ServerError as error:
        if not error.status.reason and error.status.code == 404:
            return 404, f"{error.status.message}\n"
        return error.status.code, encode_document(status_document(error.status)).decode()
    return response.status, response.raw.decode()


@pytest.mark.parametrize("what", SERIES)
def test_writes_are_answered_as_by_the_real_server(what: str) -> None:
    cluster, version = Cluster(features=Features(garbage_collection=False)), ""
    cluster.add_resource(Resource("example.com", "v1", "widgets", "Widget"))
    cluster.add_resource(Resource("example.com", "v1", "gizmos", "Gizmo"), status=True)
    zones = Resource("example.com", "v1", "zones", "Zone", namespaced=False)
    cluster.add_resource(zones, status=True)
    for write in SERIES[what]:
        status, text = send(cluster, write, version)
        if found := re.search(r'"resourceVersion":"([0-9]+)"', text):
            version = found[1]
        answer = normalize_line(text, managers=what == "an apply")
        assert (status, answer) == (write.status, write.answer), write


def test_every_kind_of_write_was_recorded() -> None:
    kinds = {"the status", "a JSON patch", "a merge patch", "a deletion", "an apply"}
    kinds |= {"metadata that break rules", "a YAML body", "a deletion of a collection"}
    kinds |= {"a cluster-scoped object", "options and versions", "a uid and a version"}
    assert kinds == set(SERIES)
    assert all(len(series) > 10 for series in SERIES.values())
