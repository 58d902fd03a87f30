"""Tests of tables: ages, pods in other states than the recorded ones, other resources."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest

from aioinformer.testing import Cluster
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.wire.tables import Include, format_age
from tests.testing.watch_events import create, decode_events, newest_version, take_lines

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 5, "2m5s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (9 * HOUR + 5 * MINUTE, "9h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY + 3 * HOUR, "8d"),
        (2 * YEAR + 3 * DAY, "2y3d"),
        (9 * YEAR + 3 * DAY, "9y"),
    ],
)
def test_an_age_has_two_figures_at_most(seconds: int, printed: str) -> None:
    """Apimachinery's ``duration.HumanDuration``."""
    assert format_age(dt.timedelta(seconds=seconds)) == printed


def cells(status: dict[str, Any], **more: Any) -> list[str]:
    cluster = Cluster()
    spec: dict[str, Any] = {"containers": [{}, {}], "nodeName": "node-1", **more}
    cluster.create("pods", {"metadata": {"name": "web-0"}, "spec": spec, "status": status})
    table = msgspec.json.decode(cluster.list("pods", form="table"))
    found: list[str] = table["rows"][0]["cells"]
    return found


def deployment_table(selector: dict[str, Any], **status: int) -> dict[str, Any]:
    cluster = Cluster()
    containers = [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:2"}]
    spec = {"replicas": 3, "selector": selector, "template": {"spec": {"containers": containers}}}
    cluster.create("deployments", {"metadata": {"name": "web"}, "spec": spec, "status": status})
    found: dict[str, Any] = msgspec.json.decode(cluster.list("deployments", form="table"))
    return found


def test_a_deployment_has_the_columns_that_kubectl_prints() -> None:
    """The columns of Kubernetes' ``printDeployment``."""
    table = deployment_table(
        {"matchLabels": {"app": "web"}}, readyReplicas=2, updatedReplicas=3, availableReplicas=1
    )
    narrow = [each["name"] for each in table["columnDefinitions"] if not each["priority"]]
    wide = [each["name"] for each in table["columnDefinitions"] if each["priority"]]
    assert narrow == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert wide == ["Containers", "Images", "Selector"]
    cells = table["rows"][0]["cells"]
    assert cells[:4] == ["web", "2/3", 3, 1]
    assert cells[5:] == ["web,log", "web:1,log:2", "app=web"]


def test_a_deployment_without_a_status_has_no_pods() -> None:
    assert deployment_table({})["rows"][0]["cells"][1:4] == ["0/3", 0, 0]


@pytest.mark.parametrize(
    ("selector", "printed"),
    [
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchLabels": {"z": "1"},
                "matchExpressions": [
                    {"key": "tier", "operator": "In", "values": ["web", "api"]},
                    {"key": "env", "operator": "NotIn", "values": ["test"]},
                    {"key": "app", "operator": "Exists"},
                    {"key": "old", "operator": "DoesNotExist"},
                ],
            },
            "app,env notin (test),!old,tier in (api,web),z=1",
        ),
    ],
)
def test_the_selector_of_a_deployment_is_printed_as_text(
    selector: dict[str, Any], printed: str
) -> None:
    """Apimachinery's ``FormatLabelSelector``."""
    assert deployment_table(selector)["rows"][0]["cells"][-1] == printed


def test_a_running_pod_shows_the_state_of_its_containers() -> None:
    containers = [{"ready": True, "restartCount": 2}, {"restartCount": 1}]
    status = {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": containers}
    assert cells(status)[:4] == ["web-0", "1/2", "Running", "3"]
    assert cells(status)[5:7] == ["10.0.0.1", "node-1"]


def test_the_status_shows_the_reason_of_a_waiting_container() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    assert cells({"phase": "Pending", "containerStatuses": [waiting]})[2] == "ImagePullBackOff"


def test_readiness_gates_are_counted() -> None:
    gates = [{"conditionType": "a"}, {"conditionType": "b"}]
    conditions = [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}]
    assert cells({"conditions": conditions}, readinessGates=gates)[-1] == "1/2"


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0", "finalizers": ["a.b/c"]}})
    cluster.delete("pods", "web-0")
    table = msgspec.json.decode(cluster.list("pods", form="table"))
    assert table["rows"][0]["cells"][1:3] == ["0/0", "Terminating"]


def test_tables_of_other_resources_have_a_name_and_an_age() -> None:
    cluster = Cluster()
    cluster.create("services", {"metadata": {"name": "shop"}})
    table = msgspec.json.decode(cluster.list("services", form="table"))
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["shop", "1s"]


# -- watches -----------------------------------------------------------------------------------


def watched(cluster: Cluster, *, include: Include = "Metadata") -> Watch:
    return cluster.watch(
        "pods",
        now=0,
        match="NotOlderThan",
        bookmarks=True,
        send_initial_events=True,
        form="table",
        include=include,
    )


def test_only_the_first_event_of_a_watch_has_the_columns() -> None:
    cluster = Cluster()
    create(cluster, "a")
    watch = watched(cluster)
    lines = take_lines(watch)
    create(cluster, "b")
    lines += take_lines(watch)

    tables = [event["object"] for event in decode_events(lines)]

    assert [table["columnDefinitions"] is None for table in tables] == [False, True, True]
    assert [row["cells"][0] for table in tables for row in table["rows"]] == ["a", "", "b"]
    assert tables[2]["metadata"] == {"resourceVersion": newest_version(cluster)}


def test_a_bookmark_is_a_row_with_empty_cells_and_its_annotation() -> None:
    (event,) = decode_events(take_lines(watched(Cluster())))
    (row,) = event["object"]["rows"]

    assert event["type"] == "BOOKMARK"
    assert row["cells"][:5] == ["", "0/0", "", "0", "<unknown>"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize(
    ("include", "shown"),
    [("Metadata", ["kind", "apiVersion", "metadata"]), ("None", None)],
)
def test_the_object_beside_the_cells_can_be_chosen(
    include: Include, shown: list[str] | None
) -> None:
    cluster = Cluster()
    create(cluster, "a")

    event, _ = decode_events(take_lines(watched(cluster, include=include)))
    obj = event["object"]["rows"][0]["object"]

    assert (None if obj is None else list(obj)) == shown


def test_a_whole_object_in_a_table_equals_that_of_a_plain_watch() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a", "annotations": {"app": "<shop>"}}})

    (event, mark), (plain, plain_mark) = (
        decode_events(take_lines(watch))
        for watch in (
            watched(cluster, include="Object"),
            cluster.watch(
                "pods", now=0, match="NotOlderThan", bookmarks=True, send_initial_events=True
            ),
        )
    )

    assert event["object"]["rows"][0]["object"] == plain["object"]
    assert mark["object"]["rows"][0]["object"] == plain_mark["object"]


def test_an_error_event_is_not_a_table() -> None:
    cluster = Cluster()
    watch = cluster.watch(
        "pods",
        now=0,
        resource_version="99",
        send_initial_events=True,
        match="NotOlderThan",
        form="table",
    )
    (event,) = decode_events(take_lines(watch))

    assert (event["type"], event["object"]["kind"]) == ("ERROR", "Status")
