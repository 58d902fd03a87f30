"""``aioinformer watch`` as a process, against servers on loopback."""

from __future__ import annotations

import asyncio
import datetime as dt
import fcntl
import json
import os
import re
import signal
import termios
import time
from array import array
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer.testing import ApiServer, Cluster
from tests.cli.processes import WAIT_TIMEOUT, environment, started_cli, started_in_terminal
from tests.client.servers import http_server


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    cluster = Cluster(clock=lambda: dt.datetime.now(dt.UTC))
    cluster.create("pods", {"metadata": {"name": "first"}, "status": {"phase": "Running"}})
    cluster.create("pods", {"metadata": {"name": "other", "namespace": "web"}})
    async with ApiServer(cluster) as server:
        yield server


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path)


@pytest.fixture
def config(server: ApiServer, tmp_path: Path) -> str:
    return str(server.kubeconfig(tmp_path / "config"))


# -- what it prints ----------------------------------------------------------------------------


async def test_watch_shows_the_state_first_and_then_each_change_at_once(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    async with started_cli("watch", "po", "--kubeconfig", config, env=env) as run:
        header, first = await run.read_line(), await run.read_line()
        server.cluster.create("pods", {"metadata": {"name": "second"}})
        second = await run.read_line()
        server.cluster.delete("pods", "first")
        third = await run.read_line()
        run.send_signal(signal.SIGINT)
        code, out, err = await run.wait()

    assert header.split() == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert first.split()[:5] == ["ADDED", "first", "0/0", "Running", "0"]
    assert second.split()[:4] == ["ADDED", "second", "0/0", "-"]
    assert third.split()[:2] == ["DELETED", "first"]
    assert (code, out, err) == (130, "", "")


@pytest.mark.clients
async def test_the_first_page_is_shown_before_the_list_is_complete(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    for number in range(1_999):  # and one of the fixture: four pages
        server.cluster.create("pods", {"metadata": {"name": f"pod-{number:04}"}})
    argv = ("watch", "po", "-o", "name", "--kubeconfig", config)
    slow = server.faults.latency(2.5, verb="list")
    async with started_cli(*argv, env=env) as run:
        names = [await run.read_line() for _ in range(500)]
        assert slow.hits < 4
        slow.end()
        names += [await run.read_line() for _ in range(1_500)]
    assert names[:2] == ["pod/first\n", "pod/pod-0000\n"]
    assert len(set(names)) == 2_000


@pytest.mark.clients
async def test_watch_writes_json_of_all_namespaces_by_label_until_it_is_terminated(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    body = {"metadata": {"name": "third", "namespace": "web", "labels": {"app": "shop"}}}
    server.cluster.create("pods", body)
    argv = ("watch", "pods", "-A", "-l", "app in (shop)", "-o", "json", "--kubeconfig", config)
    async with started_cli(*argv, env=env) as run:
        first = json.loads(await run.read_line())
        patch = {"metadata": {"annotations": {"a": "b"}}}
        server.cluster.merge_patch("pods", "third", patch, namespace="web")
        second = json.loads(await run.read_line())
        run.send_signal(signal.SIGTERM)
        code, out, err = await run.wait()

    assert (first["type"], second["type"]) == ("ADDED", "MODIFIED")
    assert list(first["object"])[:2] == ["apiVersion", "kind"]
    assert second["object"]["metadata"]["annotations"] == {"a": "b"}
    assert (code, out, err) == (143, "", "")


@pytest.mark.clients
async def test_the_message_for_an_empty_list_names_the_namespace_and_the_labels(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    arguments = ("watch", "pods", "-n", "shpo", "-l", "app=x", "--kubeconfig", config)
    async with started_cli(*arguments, env=env) as run:
        await run.read_line()
        run.send_signal(signal.SIGINT)
        _, _, err = await run.wait()

    assert err == (
        "aioinformer: no pods in the namespace shpo with the labels app=x; waiting for changes "
        "(-A watches all namespaces)\n"
    )


@pytest.mark.clients
async def test_one_object_is_watched_by_its_name(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    argv = ("watch", "pod", "later", "-o", "name", "--kubeconfig", config)
    async with started_cli(*argv, env=env) as run:
        for name in ("sooner", "later"):
            server.cluster.create("pods", {"metadata": {"name": name}})
        assert await run.read_line() == "pod/later\n"
        run.send_signal(signal.SIGINT)
        assert (await run.wait())[1] == ""


@pytest.mark.clients
async def test_wide_output_shows_the_additional_columns_of_the_server(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    spec: dict[str, Any] = {"nodeName": "node-1", "containers": [{}]}
    server.cluster.create("pods", {"metadata": {"name": "a", "namespace": "web"}, "spec": spec})
    argv = ("watch", "pods", "-n", "web", "-o", "wide", "--kubeconfig", config)
    async with started_cli(*argv, env=env) as run:
        header, first = await run.read_line(), await run.read_line()

    assert header.split()[4:] == [
        "RESTARTS",
        "AGE",
        "IP",
        "NODE",
        "NOMINATED",
        "NODE",
        "READINESS",
        "GATES",
    ]
    assert first.split()[:3] == ["ADDED", "a", "0/1"]
    assert first.split()[6:] == ["<none>", "node-1", "<none>", "<none>"]


@pytest.mark.clients
async def test_chosen_fields_are_columns(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    fields = "fields=metadata.name,PHASE:status.phase"
    async with started_cli("watch", "pods", "-o", fields, "--kubeconfig", config, env=env) as run:
        header, first = await run.read_line(), await run.read_line()
        server.cluster.merge_patch("pods", "first", {"status": {"phase": "Failed"}})
        second = await run.read_line()

    assert header.split() == ["EVENT", "metadata.name", "PHASE"]
    assert first.split() == ["ADDED", "first", "Running"]
    assert second.split() == ["MODIFIED", "first", "Failed"]


@pytest.mark.clients
async def test_yaml_is_a_stream_of_documents(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    async with started_cli("watch", "pods", "-o", "yaml", "--kubeconfig", config, env=env) as run:
        lines = [await run.read_line() for _ in range(6)]
        while (await run.read_line()) != "status:\n":
            pass
        assert await run.read_line() == "  phase: Running\n"
        server.cluster.delete("pods", "first")
        last = [await run.read_line(), await run.read_line()]

    head = ["---", "# ADDED", "apiVersion: v1", "kind: Pod", "metadata:", "  name: first"]
    assert [line.rstrip() for line in lines] == head
    assert [line.rstrip() for line in last] == ["---", "# DELETED"]


@pytest.mark.clients
async def test_kubernetes_events_of_watched_objects_are_shown_between_their_changes(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    def tell(name: str, kind: str, pod: str) -> None:
        about = {"apiVersion": "v1", "kind": kind, "namespace": "default", "name": pod}
        body = {"type": "Warning", "reason": "BackOff", "message": f"of {pod}", "count": 2}
        server.cluster.create(
            "events", {"metadata": {"name": name}, "involvedObject": about, **body}
        )

    tell("before", "Pod", "first")
    argv = ("watch", "pods", "-l", "app notin (other)", "--events", "--kubeconfig", config)
    async with started_cli(*argv, env=env) as run:
        await run.read_line()
        await run.read_line()
        said = asyncio.create_task(run.read_line())
        for number in count():  # until they are watched, they are the past
            if said.done():
                break
            tell(f"other-kind.{number}", "Node", "first")
            tell(f"other-pod.{number}", "Pod", "elsewhere")
            tell(f"now.{number}", "Pod", "first")
            await asyncio.sleep(0.01)
        server.cluster.delete("pods", "first")
        lines = [await said]
        while not lines[-1].startswith("DELETED    first "):
            lines.append(await run.read_line())

    words = {tuple(line.split(maxsplit=2)) for line in lines[:-1]}
    assert words == {("WARNING", "first", "BackOff: of first (x2)\n")}


@pytest.mark.clients
async def test_colours_can_be_switched_on_in_a_pipe_and_off_in_a_terminal(
    config: str, env: dict[str, str]
) -> None:
    argv = ("watch", "pods", "--kubeconfig", config)
    async with started_cli(*argv, "--color", "always", env=env) as run:
        assert "\x1b[1mEVENT\x1b[0m" in await run.read_line()
        assert "\x1b[32mRunning\x1b[0m" in await run.read_line()
    async with started_in_terminal(*argv, "--color", "never", env=env) as terminal:
        assert "\x1b" not in await terminal.wait_for_text("Running")


@pytest.mark.clients
async def test_watch_ends_without_a_message_when_the_reader_closes_the_pipe(
    config: str, env: dict[str, str]
) -> None:
    """Like ``| head -1``; nothing further has to happen in the cluster for it."""
    reading, writing = os.pipe()
    async with started_cli("watch", "pods", "--kubeconfig", config, env=env, stdout=writing) as run:
        os.close(writing)
        assert (await asyncio.to_thread(os.read, reading, 5)) == b"EVENT"
        os.close(reading)
        code, _, err = await run.wait()

    assert (code, err) == (141, "")


def _until_full(reading: int) -> None:
    """Wait until a pipe takes no more; 64 KiB on Linux."""
    waiting = array("i", [0])
    while waiting[0] < 60_000:
        time.sleep(0.002)
        fcntl.ioctl(reading, termios.FIONREAD, waiting)


@pytest.mark.clients
async def test_a_paused_reader_does_not_prevent_a_signal_from_ending_the_watch(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    for number in range(2000):  # more than a pipe takes
        server.cluster.create("pods", {"metadata": {"name": f"pod-{number}-{'x' * 40}"}})
    reading, writing = os.pipe()
    async with started_cli("watch", "pods", "--kubeconfig", config, env=env, stdout=writing) as run:
        os.close(writing)
        assert (await asyncio.to_thread(os.read, reading, 5)) == b"EVENT"
        await asyncio.to_thread(_until_full, reading)
        run.send_signal(signal.SIGTERM)
        code, _, err = await run.wait()
        os.close(reading)

    assert (code, err) == (143, "")


async def test_a_lost_connection_is_reported_in_a_line_and_the_watch_continues(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    async with started_cli("watch", "pods", "--kubeconfig", config, env=env) as run:
        await run.read_line()
        await run.read_line()
        server.cluster.create("pods", {"metadata": {"name": "second"}})
        await run.read_line()  # so it watches
        server.drop_connections()
        said = await run.read_stderr_line()
        server.cluster.create("pods", {"metadata": {"name": "third"}})
        line = await run.read_line()

    assert said.startswith("aioinformer: pods in default: ConnectionLost: ")
    assert line.split()[:2] == ["ADDED", "third"]


@pytest.mark.clients
async def test_cluster_scoped_resources_ignore_the_namespace(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    server.cluster.create("nodes", {"metadata": {"name": "node-1"}})
    argv = ("watch", "nodes", "-n", "web", "--kubeconfig", config)
    async with started_cli(*argv, env=env) as run:
        assert "NAMESPACE" not in await run.read_line()
        assert (await run.read_line()).split()[:2] == ["ADDED", "node-1"]


# -- a list that is forbidden ------------------------------------------------------------------

DOCUMENTS = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "kind": "Pod",
                "namespaced": True,
                "verbs": ["list", "watch"],
            }
        ],
    },
}
FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "pods is forbidden"}


async def _forbid(request: web.Request) -> web.Response:
    """Run a server whose discovery works and that rejects every list."""
    if request.path in DOCUMENTS:
        return web.json_response(DOCUMENTS[request.path])
    missing = not request.path.endswith("/pods")
    return web.Response(status=404) if missing else web.json_response(FORBIDDEN, status=403)


def _config(path: Path, server: str, **more: str) -> str:
    config: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", **more}}],
        "current-context": "c",
    }
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.clients
@pytest.mark.parametrize(
    ("output", "depth", "printed", "named"),
    [
        ("json", 50_000, '"name":"next"', "its body can't be decoded: it is nested too deeply"),
        ("yaml", 500, "  name: next", "it is nested too deeply to be printed"),
        ("fields=metadata.name,spec", 50_000, "next", "can't be decoded: it is nested too deeply"),
        ("fields=metadata.name,status.phase", 50_000, "deep", ""),
        ("wide", 50_000, "deep", ""),
    ],
)
async def test_an_object_that_cannot_be_printed_is_named_and_the_next_one_is_printed(
    output: str, depth: int, printed: str, named: str, env: dict[str, str], tmp_path: Path
) -> None:
    def pod(name: str, spec: str) -> str:
        metadata = f'{{"name":"{name}","namespace":"default","uid":"{name}","resourceVersion":"1"}}'
        return f'{{"metadata":{metadata},"spec":{spec},"status":{{"phase":"Running"}}}}'

    deep, following = pod("deep", "[" * depth + "]" * depth), pod("next", "[]")
    listed = (
        f'{{"kind":"PodList","metadata":{{"resourceVersion":"2"}},"items":[{deep},{following}]}}'
    )

    async def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/pods"):
            return await _forbid(request)
        if "sendInitialEvents" in request.query:
            return web.json_response({"kind": "Status", "code": 400}, status=400)
        if "watch" in request.query:
            await asyncio.Event().wait()
        return web.Response(text=listed, content_type="application/json")

    async with http_server(answer) as server:
        config = _config(tmp_path / "config", server)
        argv = ("watch", "pods", "--output", output, "--kubeconfig", config)
        async with started_cli(*argv, env=env) as run:
            while line := await run.read_line():
                if printed in line:
                    break
            run.send_signal(signal.SIGINT)
            code, _, err = await run.wait()

    expected = f"aioinformer: pods default/deep.*{named}\n" if named else ""
    assert re.fullmatch(expected, err)
    assert code == 130


@pytest.mark.clients
async def test_a_forbidden_list_is_reported_once_and_retried(
    env: dict[str, str], tmp_path: Path
) -> None:
    listed: list[web.Request] = []
    retried = asyncio.Event()

    async def forbid(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/pods") and "watch" not in request.query:
            listed.append(request)
            if len(listed) == 3:
                retried.set()
        return await _forbid(request)

    async with http_server(forbid) as server:
        config = _config(tmp_path / "config", server)
        async with started_cli("watch", "pods", "--kubeconfig", config, env=env) as run:
            first = await run.read_stderr_line()
            async with asyncio.timeout(WAIT_TIMEOUT):
                await retried.wait()
            run.send_signal(signal.SIGINT)
            code, out, err = await run.wait()

    assert first.startswith("aioinformer: pods in default: Forbidden: ")
    assert "403 Forbidden: pods is forbidden; a Role or ClusterRole must allow" in first
    assert err == "aioinformer: pods in default: trying again until interrupted\n", (
        "the same rejection again says nothing new"
    )
    assert (code, out) == (130, "")


@pytest.mark.clients
async def test_a_terminal_shows_the_time_until_the_next_attempt(
    env: dict[str, str], tmp_path: Path
) -> None:
    async with http_server(_forbid) as server:
        config = _config(tmp_path / "config", server)
        argv = ("watch", "pods", "--kubeconfig", config)
        async with started_in_terminal(*argv, env=env) as run:
            out = await run.wait_for_text("next attempt in ")
            run.type_keys(b"\x03")
            code, _ = await run.wait()

    assert "waiting for pods in default: next attempt in " in out
    assert code == 130


@pytest.mark.clients
async def test_a_watch_continues_and_reports_that_requests_succeed_again(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    argv = ("watch", "pods", "-o", "name", "--kubeconfig", config)
    async with started_cli(*argv, env=env) as run:
        assert await run.read_line() == "pod/first\n"
        await server.stop()
        while "trying again" not in (line := await run.read_stderr_line()):
            assert line
        assert line == "aioinformer: pods in default: trying again until interrupted\n"
        await server.start()
        server.cluster.create("pods", {"metadata": {"name": "back"}})
        assert await run.read_line() == "pod/back\n"
        while "requests succeed again" not in (line := await run.read_stderr_line()):
            assert line
        assert line.startswith("aioinformer: pods in default: requests succeed again, after ")
        run.send_signal(signal.SIGINT)
        assert (await run.wait())[0] == 130


@pytest.mark.clients
async def test_in_a_terminal_an_outage_is_shown_until_it_is_over(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    argv = ("watch", "pods", "-o", "name", "--kubeconfig", config)
    async with started_in_terminal(*argv, env=env) as run:
        await run.wait_for_text("pod/first")
        await server.stop()
        away = await run.wait_for_text("waiting for pods in default: next attempt in ")
        await server.start()
        server.cluster.create("pods", {"metadata": {"name": "back"}})
        back = (await run.wait_for_text("pod/back\r\n")).removeprefix(away)

    assert back.endswith("\r\x1b[Kpod/back\r\n"), "in a line of its own"


@pytest.mark.clients
async def test_a_terminal_shows_the_progress_of_the_initial_list(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    for number in range(1000):
        server.cluster.create("pods", {"metadata": {"name": f"pod-{number}"}})
    argv = ("watch", "pods", "-o", "name", "--kubeconfig", config)
    with server.faults.latency(0.6, verb="list"):
        async with started_in_terminal(*argv, env=env) as run:
            said = await run.wait_for_text("%)")
            await run.wait_for_text("pod/pod-999")

    assert "pods in default: 500 of 1,001 items (50%)" in said


@pytest.mark.clients
async def test_verbose_logs_everything(server: ApiServer, config: str, env: dict[str, str]) -> None:
    async with started_cli("watch", "pods", "-v", "--kubeconfig", config, env=env) as run:
        await run.read_line()
        said = await run.read_stderr_line()

    assert " aioinformer." in said


# -- what can't be -----------------------------------------------------------------------------


async def _refusal(*argv: str, env: dict[str, str]) -> tuple[int, str]:
    """Return the exit code and the one line on stderr."""
    async with started_cli("watch", *argv, env=env) as run:
        code, out, err = await run.wait()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("aioinformer: ")
    return code, err.removeprefix("aioinformer: ").rstrip()


@pytest.mark.clients
async def test_the_error_without_a_cluster_names_the_sources_that_were_tried(
    env: dict[str, str],
) -> None:
    code, said = await _refusal("pods", env=env)

    assert code == 2
    assert said.startswith("no cluster is configured: ")
    assert "$KUBECONFIG" in said
    assert f"{env['HOME']}/.kube/config" in said


@pytest.mark.clients
async def test_a_context_that_does_not_exist_is_named(config: str, env: dict[str, str]) -> None:
    code, said = await _refusal("pods", "--kubeconfig", config, "--context", "mars", env=env)

    assert code == 2
    assert "'mars'" in said


@pytest.mark.clients
async def test_an_unknown_resource_gets_suggestions(config: str, env: dict[str, str]) -> None:
    code, said = await _refusal("podz", "--kubeconfig", config, env=env)

    assert code == 2
    assert "'podz'" in said
    assert "did you mean pod" in said


@pytest.mark.clients
async def test_a_bad_selector_is_rejected_before_the_cluster_is_read(
    env: dict[str, str],
) -> None:
    code, said = await _refusal("pods", "-l", "a in (", env=env)

    assert code == 2
    assert said.startswith("--selector 'a in (': ")
    assert said.endswith(", at the end")


@pytest.mark.clients
@pytest.mark.parametrize("name", ["Bad_NS", "a/b", "x" * 64])
async def test_a_malformed_namespace_is_rejected_in_one_line(
    name: str, env: dict[str, str]
) -> None:
    code, said = await _refusal("pods", "-n", name, env=env)

    assert code == 2
    assert said.startswith("--namespace: a namespace is a DNS label ")
    assert said.endswith(f", not {name!r}")


@pytest.mark.clients
async def test_a_context_with_a_malformed_namespace_is_rejected_in_one_line(
    server: ApiServer, env: dict[str, str], tmp_path: Path
) -> None:
    config = _config(tmp_path / "config", server.url, namespace="Bad_NS")
    code, said = await _refusal("pods", "--kubeconfig", config, env=env)

    assert code == 2
    assert said.startswith("the namespace of the context: a namespace is a DNS label ")
    assert said.endswith(", not 'Bad_NS'")


@pytest.mark.clients
async def test_a_field_selector_that_the_server_does_not_support_ends_the_watch(
    config: str, env: dict[str, str]
) -> None:
    argv = ("pods", "--field-selector", "spec.colour=red", "--kubeconfig", config)
    code, said = await _refusal(*argv, env=env)

    assert code == 2
    assert "field label not supported: spec.colour" in said


@pytest.mark.clients
async def test_an_unreachable_server_is_named(
    server: ApiServer, config: str, env: dict[str, str]
) -> None:
    await server.stop()
    code, said = await _refusal("pods", "--kubeconfig", config, env=env)

    assert code == 1
    assert server.url.removeprefix("http://") in said


@pytest.mark.clients
async def test_a_wrong_token_is_reported_without_the_token(
    env: dict[str, str], tmp_path: Path
) -> None:
    async with ApiServer(token="right") as server:
        wrong = ApiServer(server.cluster, port=int(server.url.rpartition(":")[2]), token="secret-1")
        config = str(wrong.kubeconfig(tmp_path / "wrong"))
        code, said = await _refusal("pods", "--kubeconfig", config, env=env)

    assert code == 1
    assert "401 Unauthorized" in said
    assert "secret-1" not in said
