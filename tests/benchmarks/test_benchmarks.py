"""The benchmarks at a small size: every contestant receives all events that were sent."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contestants.contestant import (
    PYTHON_PEERS,
    Contestant,
    Peers,
    PythonPeer,
    floors,
    ours,
)
from benchmarks.load.pods import Dataset, digest
from benchmarks.load.processes import MeasurementFailed, MemorySamples, serving
from benchmarks.load.scratch import scratch
from benchmarks.measures.curves import during_sync
from benchmarks.measures.states import measured

PODS, EVENTS = 60, 200


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.write(tmp_path_factory.mktemp("dataset"), PODS, EVENTS)


def chunks(path: Path) -> Iterator[bytes]:
    """Yield the chunks of an HTTP body, without their frames."""
    body = path.read_bytes()
    while body:
        head, _, rest = body.partition(b"\r\n")
        size = int(head, 16)
        assert rest[size : size + 2] == b"\r\n"
        if size:
            yield rest[:size]
        body = rest[size + 2 :]


# -- the bytes -------------------------------------------------------------------------------------


def test_the_pods_are_of_the_size_that_the_numbers_are_about(dataset: Dataset) -> None:
    assert dataset.event_bytes / EVENTS == pytest.approx(3_300, rel=0.05)


def test_the_list_is_one_document_in_small_chunks_of_distinct_pods(dataset: Dataset) -> None:
    parts = list(chunks(dataset.folder / "list.json.http"))
    assert {len(part) for part in parts[:-1]} == {2048}
    items = json.loads(b"".join(parts))["items"]
    assert sum(map(len, parts)) == dataset.listed_bytes
    for name in ("name", "uid", "resourceVersion"):
        assert len({item["metadata"][name] for item in items}) == PODS


def test_an_event_is_a_chunk_and_versions_rise(dataset: Dataset) -> None:
    events = [json.loads(part) for part in chunks(dataset.folder / "watch.json.http")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert len(events) == EVENTS
    assert {event["type"] for event in events} == {"MODIFIED"}
    assert versions == sorted(set(versions))
    assert len({event["object"]["metadata"]["name"] for event in events}) > PODS / 2


def test_the_digest_is_that_of_the_last_version_of_each_pod(dataset: Dataset) -> None:
    last: dict[str, str] = {}
    listed = json.loads(b"".join(chunks(dataset.folder / "list.json.http")))["items"]
    changed = [json.loads(part)["object"] for part in chunks(dataset.folder / "watch.json.http")]
    for pod in [*listed, *changed]:
        last[pod["metadata"]["name"]] = pod["metadata"]["resourceVersion"]
    assert digest(last) == dataset.digest
    assert digest({**last, "one-more": "1"}) != dataset.digest


def test_a_stream_of_the_state_ends_with_the_mark_that_client_go_waits_for(
    dataset: Dataset,
) -> None:
    *added, end = [json.loads(part) for part in chunks(dataset.folder / "initial.json.http")]
    assert [event["type"] for event in added] == ["ADDED"] * PODS
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_second_list_shows_the_same_pods_in_other_versions(dataset: Dataset) -> None:
    dataset.write_relist()
    before, after = (
        {
            pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"]
            for pod in json.loads(b"".join(chunks(dataset.folder / f"{name}.json.http")))["items"]
        }
        for name in ("list", "relist")
    )
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())


# -- the contestants -------------------------------------------------------------------------------


def test_the_library_receives_every_event(dataset: Dataset) -> None:
    sample = ours("ours", "--reads=fields", "--listeners=2").measure(dataset)
    assert (sample.delivered, sample.digest) == (EVENTS, dataset.digest)
    assert sample.sync_cpu > 0
    assert sample.settled > sample.bare > 0
    assert sample.peak > sample.bare


def test_the_floor_reads_every_line(dataset: Dataset) -> None:
    floor = floors()[0]
    assert floor.measure(dataset).delivered == EVENTS


@pytest.mark.benchmarks
@pytest.mark.parametrize("peer", PYTHON_PEERS, ids=lambda peer: peer.name)
def test_a_peer_receives_every_event_and_keeps_the_objects(
    dataset: Dataset, peer: PythonPeer
) -> None:
    if not peer.version:
        pytest.skip(f"{peer.package} is not installed")
    sample = peer.contestant.measure(dataset)
    assert (sample.delivered, sample.digest) == (EVENTS, dataset.digest)
    assert sample.settled > sample.bare > 0


def test_a_peer_that_fails_is_left_out_and_named_and_the_library_ends_the_run(
    dataset: Dataset,
) -> None:
    broken = Contestant("broken", (sys.executable, "-c", "raise SystemExit('no such pod')"))
    peers = Peers([*floors(), broken], {}, {}, None)
    with pytest.raises(MeasurementFailed, match="no such pod") as failed:
        broken.measure(dataset)
    peers.leave_out(broken, failed.value)
    assert broken not in peers.present
    assert peers.absent == {"broken": "failed: no such pod"}
    for needed in (ours("ours"), floors()[0]):
        with pytest.raises(MeasurementFailed):
            peers.leave_out(needed, failed.value)


@pytest.mark.benchmarks
def test_the_memory_of_a_contestant_is_recorded_while_it_runs(dataset: Dataset) -> None:
    samples = MemorySamples()
    sample = ours("ours").measure(dataset, samples)
    times = [at for at, _ in samples.points]
    assert times == sorted(times)
    assert max(size for _, size in samples.points) >= sample.bare
    curve = during_sync(samples, sample)
    assert 0 < len(curve) <= len(times)


def test_the_load_server_sends_pages_to_a_client_that_sets_a_limit() -> None:
    """The pages together are the whole list; resourceVersion=0 ignores the limit."""
    with scratch() as folder:
        whole = Dataset.write(folder, 250, 1)
        whole.write_pages()
        with serving(folder) as server:

            def listed(query: str) -> dict[str, Any]:
                with urllib.request.urlopen(f"{server}/api/v1/pods?{query}") as answer:  # noqa: S310 - ours
                    page: dict[str, Any] = json.load(answer)
                    return page

            names: list[str] = []
            page = listed("limit=100")
            sizes = [len(page["items"])]
            names += [item["metadata"]["name"] for item in page["items"]]
            while token := page["metadata"].get("continue"):
                page = listed(f"limit=100&continue={token}")
                sizes.append(len(page["items"]))
                names += [item["metadata"]["name"] for item in page["items"]]
            assert sizes == [100, 100, 50]
            assert len(set(names)) == 250
            for query in ("limit=100&resourceVersion=0", "limit=77", ""):
                assert [item["metadata"]["name"] for item in listed(query)["items"]] == names


@pytest.mark.benchmarks
def test_a_contestant_that_misses_the_last_of_a_pod_does_not_count(dataset: Dataset) -> None:
    wrong = dataclasses.replace(dataset, digest="0" * 64)
    with pytest.raises(MeasurementFailed, match="ours: the last version of some pod"):
        ours("ours").measure(wrong)


@pytest.mark.parametrize("path", ["/forget", "/expire"])
@pytest.mark.parametrize(
    "query", ["", "?watch=true&sendInitialEvents=true"], ids=["list", "stream"]
)
def test_the_load_server_shows_the_same_state_or_another_one_afterwards(
    dataset: Dataset, path: str, query: str
) -> None:
    dataset.write_relist()

    def version(server: str) -> bytes:
        with urllib.request.urlopen(f"{server}/api/v1/pods{query}") as answer:  # noqa: S310 - ours
            found = re.search(rb'"resourceVersion":"([0-9]+)"', answer.read(4096))
            assert found
            return found[1]

    with serving(dataset.folder) as server:
        before = version(server)
        urllib.request.urlopen(f"{server}{path}", data=b"").close()  # noqa: S310 - ours
        assert (version(server) == before) is (path == "/forget")


@pytest.mark.benchmarks
def test_a_state_that_changed_is_read_again_as_a_whole(dataset: Dataset) -> None:
    """The benchmark itself fails if objects are missing or the strategy isn't the expected one."""
    dataset.write_relist()
    readings = measured(dataset, "watchlist", "changed")
    assert readings.first.longest.what
    assert readings.again.peak > 0
