"""What ``aioinformer watch`` prints of the lists and changes of a server."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web

from aioinformer.testing import ApiServerThread
from tests.cli.commands import CommandLine, RunningCommand
from tests.cli.conftest import Enter
from tests.client.recordings import read_recording
from tests.client.servers import Handler, http_server

DOCUMENTS: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list", "watch"]}
        ],
    },
}


def serving(body: bytes, *events: bytes) -> Handler:
    """Return the handler of a server with this list of pods and these changes."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            response = web.StreamResponse()
            with suppress(ConnectionResetError):  # the command has ended
                await response.prepare(request)
                await response.write(b"".join(events))
                await asyncio.Event().wait()
            return response
        if request.path.endswith("/pods"):
            return web.Response(body=body, content_type="application/json")
        found = DOCUMENTS.get(request.path)
        return web.json_response(found) if found else web.Response(status=404)

    return answer


def pod(name: str = "web-0", version: str = "1", created: str = "", **body: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": version}
    metadata |= {"creationTimestamp": created} if created else {}
    return {"metadata": metadata | body.pop("metadata", {}), **body}


def pod_list(*items: dict[str, Any]) -> bytes:
    return msgspec.json.encode(
        {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items}
    )


def table(columns: Sequence[dict[str, Any]], *rows: tuple[list[Any], dict[str, Any]]) -> Any:
    return {
        "kind": "Table",
        "metadata": {"resourceVersion": "9"},
        "columnDefinitions": columns,
        "rows": [{"cells": cells, "object": obj} for cells, obj in rows],
    }


def event(kind: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def cells(line: str) -> list[str]:
    return re.split(r" {3,}", line.rstrip())


class Watching:
    """Reads what ``watch`` prints of a server of a given list."""

    def __init__(self, cli: CommandLine, enter: Enter) -> None:
        self._cli, self._enter = cli, enter

    def lines(self, count: int, body: bytes, *events: bytes, options: str = "") -> list[str]:
        """Return the first lines for a list and changes of it."""
        with self._started(body, *events, options=options) as run:
            return [run.read_line() for _ in range(count)]

    def text(self, end: str, body: bytes, *events: bytes, options: str = "") -> str:
        """Return the text up to ``end``."""
        with self._started(body, *events, options=options) as run:
            return run.out.read_until(end)

    def _started(
        self, body: bytes, *events: bytes, options: str
    ) -> AbstractContextManager[RunningCommand]:
        url = self._enter(http_server(serving(body, *events)))
        return self._cli.started("watch", "pods", "-s", url, *options.split())


@pytest.fixture
def watching(cli: CommandLine, enter: Enter) -> Watching:
    return Watching(cli, enter)


# -- of a server that prints no tables ---------------------------------------------------------


def conditions(**given: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status} for name, status in given.items()]}


STATUSES: list[tuple[dict[str, Any], str]] = [
    ({}, "-"),
    ({"status": None}, "-"),
    ({"status": "odd"}, "-"),
    ({"status": {"phase": "Bound"}}, "Bound"),
    ({"status": {"phase": 3, "conditions": "odd"}}, "-"),
    ({"status": {"conditions": [{"type": "Ready", "status": "True"}, None]}}, "Ready"),
    ({"status": conditions(Ready="Unknown")}, "NotReady"),
    ({"status": conditions(Available="False")}, "Unavailable"),
    ({"status": conditions(Complete="True")}, "Complete"),
    ({"status": conditions(Complete="False", Failed="True")}, "Failed"),
    ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "Terminating"),
    ({"status": {"phase": "\x1b[31mRed"}}, "\ufffd[31mRed"),
]


def test_a_status_is_the_phase_or_the_most_important_condition(watching: Watching) -> None:
    pods = [pod(f"pod-{number:02}", **body) for number, (body, _) in enumerate(STATUSES)]
    header, *rows = watching.lines(len(pods) + 1, pod_list(*pods))

    assert header.split() == ["EVENT", "NAME", "STATUS", "AGE"]
    assert {cells(row)[1]: cells(row)[2] for row in rows} == {
        f"pod-{number:02}": status for number, (_, status) in enumerate(STATUSES)
    }


MINUTE, HOUR, DAY = 60, 3600, 86400
AGES = [
    (-HOUR, "0s"),
    (100, r"1\d\ds"),
    (10 * MINUTE - 30, r"9m3\ds"),
    (10 * MINUTE, "10m"),
    (3 * HOUR - 30, "179m"),
    (3 * HOUR, "3h"),
    (8 * HOUR - 30, "7h59m"),
    (8 * HOUR, "8h"),
    (48 * HOUR - 30, "47h"),
    (48 * HOUR, "2d"),
    (8 * DAY - 30, "7d23h"),
    (8 * DAY, "8d"),
    (730 * DAY - 30, "729d"),
    (731 * DAY, "2y1d"),
    (8 * 365 * DAY, "8y"),
]


def test_an_age_is_written_as_kubectl_writes_it(watching: Watching) -> None:
    """Apimachinery's ``duration.HumanDuration``."""
    now = dt.datetime.now(dt.UTC)
    pods = [
        pod(f"pod-{number:02}", created=(now - dt.timedelta(seconds=seconds)).isoformat())
        for number, (seconds, _) in enumerate(AGES)
    ]
    _, *rows = watching.lines(len(pods) + 1, pod_list(*pods))

    shown = {cells(row)[1]: cells(row)[-1] for row in rows}
    for number, (_, age) in enumerate(AGES):
        assert re.fullmatch(age, shown[f"pod-{number:02}"])


def test_changes_of_objects_are_rows_too(watching: Watching) -> None:
    _, *rows = watching.lines(
        3, pod_list(pod()), event("MODIFIED", pod(version="2", status={"phase": "Running"}))
    )
    assert [cells(row)[:3] for row in rows] == [
        ["ADDED", "web-0", "-"],
        ["MODIFIED", "web-0", "Running"],
    ]


# -- of a server that prints tables ------------------------------------------------------------

NAME = {"name": "Name", "type": "string"}
NODE = {"name": "Nominated Node", "type": "string", "priority": 1}


@pytest.mark.parametrize(
    ("options", "headings", "row"),
    [
        ("", ["EVENT", "NAME", "READY"], ["ADDED", "web-0", "true"]),
        ("-o wide", ["EVENT", "NAME", "READY", "NOMINATED NODE"], ["ADDED", "web-0", "true", "3"]),
        ("-A", ["EVENT", "NAMESPACE", "NAME", "READY"], ["ADDED", "default", "web-0", "true"]),
    ],
)
def test_the_columns_are_those_that_the_server_prints(
    options: str, headings: list[str], row: list[str], watching: Watching
) -> None:
    listed = table([NAME, {"name": "Ready"}, NODE], (["web-0", True, 3], pod()))
    lines = watching.lines(2, msgspec.json.encode(listed), options=options)

    assert [re.split(r" {2,}", line.rstrip()) for line in lines] == [headings, row]


def test_a_page_of_a_real_server_is_printed(watching: Watching) -> None:
    header, first, _ = watching.lines(3, read_recording("28-list-table").body)

    assert header.split()[:5] == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS"]
    assert first.split()[:4] == ["ADDED", "web-0", "0/1", "Pending"]


def test_changes_are_tables_of_one_row_and_bookmarks_are_not_printed(watching: Watching) -> None:
    mark = pod(metadata={"annotations": {"a": "true"}})
    lines = watching.lines(
        4,
        msgspec.json.encode(table([NAME, {"name": "Node"}], (["web-0", None], pod()))),
        event("BOOKMARK", table([], (["", None], mark))),
        event("MODIFIED", table([], (["web-0", "node-1"], pod(version="10")))),
        event("DELETED", table([], (["web-0"], pod(version="11")))),
    )

    assert [line.split() for line in lines] == [
        ["EVENT", "NAME", "NODE"],
        ["ADDED", "web-0", "-"],
        ["MODIFIED", "web-0", "node-1"],
        ["DELETED", "web-0", "-"],
    ]


@pytest.mark.parametrize(
    ("change", "headings", "row"),
    [
        (table([NAME, {"name": "Colour"}], (["b", "red"], pod("b", "10"))), "NAME COLOUR", "b red"),
        (pod("b", "10"), "NAME STATUS AGE", "b - -"),
    ],
    ids=["others", "none"],
)
def test_a_change_of_the_columns_prints_another_header(
    change: Any, headings: str, row: str, watching: Watching
) -> None:
    listed = msgspec.json.encode(table([NAME, {"name": "Node"}], (["a", None], pod("a"))))
    lines = watching.lines(4, listed, event("ADDED", change))

    assert lines[2].split() == ["EVENT", *headings.split()]
    assert lines[3].split() == ["ADDED", *row.split()]


def test_the_initial_objects_determine_the_column_widths(watching: Watching) -> None:
    long = pod("a-name-that-is-longer-than-24-letters", status={"phase": "Pending"})
    header, *rows = watching.lines(3, pod_list(pod(status={"phase": "Running"}), long))

    assert {header.index("STATUS")} == {row.index(cells(row)[2]) for row in rows}


@pytest.mark.parametrize(
    ("phase", "code"),
    [
        ("Running", "\x1b[32m"),
        ("CrashLoopBackOff", "\x1b[31m"),
        ("Failed", "\x1b[31m"),
        ("ErrImagePull", "\x1b[31m"),
        ("Init:0/1", "\x1b[33m"),
        ("Unknown", "   "),
    ],
)
def test_the_colour_of_a_status_shows_success_failure_or_neither(
    phase: str, code: str, watching: Watching
) -> None:
    _, row = watching.lines(2, pod_list(pod(status={"phase": phase})), options="--color always")

    assert f"{code}{phase}" in row
    assert row.startswith("\x1b[2mADDED\x1b[0m"), "dim, since it was there"


def test_changed_cells_are_bold_except_the_age(watching: Watching) -> None:
    columns = [NAME, {"name": "Ready"}, {"name": "Age"}]
    _, _, changed, added, deleted = watching.lines(
        5,
        msgspec.json.encode(table(columns, (["web-0", "0/1", "5s"], pod()))),
        event("MODIFIED", table([], (["web-0", "1/1", "9s"], pod(version="10")))),
        event("ADDED", table([], (["web-1", "1/1", "9s"], pod("web-1", "11")))),
        event("DELETED", table([], (["web-1", "1/1", "9s"], pod("web-1", "12")))),
        options="--color always",
    )

    assert "\x1b[1m1/1\x1b[0m" in changed
    assert changed.count("\x1b[1m") == 1
    assert added.startswith("\x1b[32mADDED")
    assert deleted.startswith("\x1b[31mDELETED")


# -- forms -------------------------------------------------------------------------------------


def test_the_headings_of_chosen_fields_are_their_paths_or_given_names(watching: Watching) -> None:
    headings = [
        "metadata.name",
        "NODE",
        "spec.args",
        "spec.map",
        "spec.args[1]",
        "spec['a,b/c']",
        "spec.no",
    ]
    paths = ",".join(headings).replace("NODE", "NODE:spec.nodeName")
    spec = {"nodeName": "node-1", "args": ["é", 1], "map": {"a": {"b": None}}, "a,b/c": "x"}
    header, row = watching.lines(2, pod_list(pod(spec=spec)), options=f"-o fields={paths}")

    assert header.split() == ["EVENT", *headings]
    assert row.split() == (
        ["ADDED", "web-0", "node-1", '["é",1]', '{"a":{"b":null}}', "1", "x", "<none>"]
    )


EXPECTED = "invalid path: expected a"


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ("", f"'': {EXPECTED} key, at the end"),
        ("metadata.name,", f"'': {EXPECTED} key, at the end"),
        ("a.b.,c", f"'a.b.': {EXPECTED} key, at the end"),
        ("a,NODE:spec..x", f"'spec..x': {EXPECTED} key, at character 6"),
        ("a[x]", f"'a[x]': {EXPECTED} position or a quoted key in brackets, at character 2"),
        ("a,b['c", f'"b[\'c": {EXPECTED} position or a quoted key in brackets, at character 2'),
    ],
)
def test_a_bad_path_is_reported_in_a_line_with_its_position(
    paths: str, said: str, cli: CommandLine
) -> None:
    said = f"aioinformer: --output fields: {said}\n"
    assert cli.run("watch", "pods", "-o", f"fields={paths}") == (2, "", said)


def test_json_is_one_compact_line_with_the_type_first(watching: Watching) -> None:
    assert watching.lines(1, pod_list(pod(spec={"x": 1.0})), options="-o json") == [
        '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0",'
        '"namespace":"default","uid":"web-0","resourceVersion":"1"},"spec":{"x":1.0}}}\n'
    ]


def test_yaml_is_a_stream_of_documents(watching: Watching) -> None:
    new = pod(version="10", data={"text": "a " * 100})
    events = event("MODIFIED", new), event("DELETED", new)
    text = watching.text("---\n# DELETED\n", pod_list(pod()), *events, options="-o yaml")
    _, first, second, _ = text.split("---\n")

    assert first.startswith("# ADDED\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web-0\n")
    assert second.startswith("# MODIFIED\n")
    assert yaml.safe_load(second) == {"apiVersion": "v1", "kind": "Pod", **new}


def test_a_name_and_a_type_carry_the_group_of_the_resource(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.cluster.create("deployments", {"metadata": {"name": "web"}})
    with cli.started("watch", "deploy", "-o", "name") as run:
        assert run.read_line() == "deployment.apps/web\n"
        server.cluster.delete("deployments", "web")
        assert run.read_line() == "deployment.apps/web\n"
        server.cluster.create("deployments", {"metadata": {"name": "web"}})
        assert run.read_line() == "deployment.apps/web\n"
    with cli.started("watch", "deploy", "-o", "json") as run:
        assert '"apiVersion":"apps/v1"' in run.read_line()


@pytest.mark.parametrize("form", ["json", "yaml", "name", "wide", "fields=metadata.name"])
def test_no_text_of_an_object_controls_the_terminal(form: str, watching: Watching) -> None:
    odd = "a\nforged\r\x00\x1b[31m\u2028\u202e\x85\U000e0001ü"
    listed = pod_list(pod(metadata={"name": odd}, data={odd: [odd]}), pod("next"))
    shown = watching.text("next", listed, options=f"-o {form}")

    assert all(map(str.isprintable, shown.split("\n")))
    assert not any(line.startswith("forged") for line in shown.split("\n"))
    if form == "json":
        assert msgspec.json.decode(shown.partition("\n")[0])["object"]["data"] == {odd: [odd]}
    if form == "yaml":
        assert yaml.safe_load(shown.rpartition("---")[0])["data"] == {odd: [odd]}


@pytest.mark.parametrize(
    ("form", "depth", "printed", "named"),
    [
        ("json", 50_000, '"name":"next"', "its body can't be decoded: it is nested too deeply"),
        ("yaml", 500, "  name: next", "it is nested too deeply to be printed"),
        ("fields=metadata.name,spec", 50_000, "next", "can't be decoded: it is nested too deeply"),
        ("fields=metadata.name,status.phase", 50_000, "deep", ""),
        ("wide", 50_000, "deep", ""),
    ],
)
def test_an_object_that_cannot_be_printed_is_named_and_the_next_one_is_printed(
    form: str, depth: int, printed: str, named: str, cli: CommandLine, enter: Enter
) -> None:
    listed = pod_list(pod("deep", spec="?"), pod("next"))
    body = listed.replace(b'"?"', b"[" * depth + b"]" * depth)
    url = enter(http_server(serving(body)))
    with cli.started("watch", "pods", "-o", form, "-s", url) as run:
        run.out.read_until(printed)
        code, _, err = run.interrupt()

    expected = f"aioinformer: pods default/deep.*{named}\n" if named else ""
    assert re.fullmatch(expected, err)
    assert code == 130


@pytest.mark.parametrize("body", [b"<html>", b"[" * 99])
def test_a_list_that_cannot_be_read_is_an_error_of_the_informer(
    body: bytes, cli: CommandLine, enter: Enter
) -> None:
    url = enter(http_server(serving(body)))
    with cli.started("watch", "pods", "-s", url) as run:
        assert run.read_stderr_line().startswith("aioinformer: pods in default: ProtocolError: ")


@pytest.mark.parametrize(
    "line", [b"no JSON\n", event("ERROR", {"kind": "Status", "code": 500, "message": "no"})]
)
def test_a_watch_line_that_is_not_a_table_is_an_error_of_the_informer(
    line: bytes, cli: CommandLine, enter: Enter
) -> None:
    url = enter(http_server(serving(pod_list(pod()), line)))
    with cli.started("watch", "pods", "-s", url) as run:
        assert run.read_stderr_line().startswith("aioinformer: pods in default: ")
