"""``aioinformer watch``: its life beside servers on loopback."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import termios
import time
from array import array
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import ApiServer, ApiServerThread
from tests.cli.commands import CommandLine, poll


@pytest.fixture
def pods(server: ApiServerThread) -> ApiServerThread:
    """Return a server with a pod in each of two namespaces."""
    server.cluster.create("pods", {"metadata": {"name": "first"}, "status": {"phase": "Running"}})
    server.cluster.create("pods", {"metadata": {"name": "other", "namespace": "web"}})
    return server


# -- what it prints ----------------------------------------------------------------------------


def test_watch_shows_the_state_first_and_then_each_change_at_once(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", "po") as run:
        header, first = run.read_line(), run.read_line()
        pods.cluster.create("pods", {"metadata": {"name": "second"}})
        second = run.read_line()
        pods.cluster.delete("pods", "first")
        third = run.read_line()
        assert run.interrupt() == (130, "", "")

    assert header.split() == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert first.split()[:5] == ["ADDED", "first", "0/0", "Running", "0"]
    assert second.split()[:4] == ["ADDED", "second", "0/0", "-"]
    assert third.split()[:2] == ["DELETED", "first"]


@pytest.mark.usefixtures("_fast")
def test_the_first_page_is_shown_before_a_list_that_begins_again_is_complete(
    server: ApiServerThread, cli: CommandLine
) -> None:
    for number in range(1_001):
        server.cluster.create("pods", {"metadata": {"name": f"pod-{number:04}"}})
    slow = server.faults.latency(0.4, verb="list")
    with cli.started("watch", "po") as run:
        lines = [run.read_line() for _ in range(501)]
        assert slow.hits < 3
        server.cluster.delete("pods", "pod-0000")
        server.cluster.merge_patch("pods", "pod-0001", {"status": {"phase": "Failed"}})
        server.cluster.compact()  # the other pages have expired
        slow.end()
        lines += [run.read_line() for _ in range(503)]
        assert "410 Expired" in run.read_stderr_line()
        assert run.interrupt() == (130, "", "")

    events = [tuple(line.split()[:2]) for line in lines[1:]]
    assert events[0] == ("ADDED", "pod-0000")
    assert sum(event == "ADDED" for event, _ in events) == len(set(events)) - 2 == 1_001
    assert {event for event in events if event[0] != "ADDED"} == {
        ("DELETED", "pod-0000"),
        ("MODIFIED", "pod-0001"),
    }


def test_watch_writes_json_of_all_namespaces_by_label_until_it_is_terminated(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    body = {"metadata": {"name": "third", "namespace": "web", "labels": {"app": "shop"}}}
    pods.cluster.create("pods", body)
    with cli.started("watch", "pods", "-A", "-l", "app in (shop)", "-o", "json") as run:
        first = json.loads(run.read_line())
        patch = {"metadata": {"annotations": {"a": "b"}}}
        pods.cluster.merge_patch("pods", "third", patch, namespace="web")
        second = json.loads(run.read_line())
        run.send_signal(signal.SIGTERM)
        assert run.wait() == (143, "", "")

    assert (first["type"], second["type"]) == ("ADDED", "MODIFIED")
    assert list(first["object"])[:2] == ["apiVersion", "kind"]
    assert second["object"]["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            "pods -n shpo -l app=x",
            "pods in the namespace shpo with the labels app=x; waiting for changes "
            "(-A watches all namespaces)",
        ),
        (
            "pod/b --field-selector spec.nodeName=n",
            "pods called b in the namespace default with the fields spec.nodeName=n; waiting for "
            "changes (-A watches all namespaces)",
        ),
        ("pods -A -l app=x", "pods with the labels app=x; waiting for changes"),
    ],
)
def test_the_message_for_an_empty_list_names_what_was_asked_for(
    argv: str, said: str, pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", *argv.split(), "-o", "name") as run:
        assert run.read_stderr_line() == f"aioinformer: no {said}\n"
        assert run.interrupt() == (130, "", "")


@pytest.mark.parametrize("argv", [("pod", "later"), ("pod/later",)], ids="/".join)
def test_one_object_is_watched_by_its_name(
    argv: tuple[str, ...], pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", *argv, "-o", "name") as run:
        for name in ("sooner", "later"):
            pods.cluster.create("pods", {"metadata": {"name": name}})
        assert run.read_line() == "pod/later\n"
        assert run.interrupt()[1] == ""


def test_kubernetes_events_of_watched_objects_are_shown_between_their_changes(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "first"}
    numbers = count()

    def tell(kind: str, pod: str, **body: Any) -> None:
        whole = {"type": "Warning", "reason": "BackOff", "message": f"of {pod}"}
        metadata = {"name": f"event.{next(numbers)}"}
        involved = about | {"kind": kind, "name": pod}
        event = {"metadata": metadata, "involvedObject": involved, **whole, **body}
        pods.cluster.create("events", event)

    tell("Pod", "first")
    with cli.started("watch", "pods", "-l", "app notin (other)", "--events") as run:
        header = run.read_line()
        run.read_line()
        while not run.out.pending():  # until they are watched, they are the past
            tell("Node", "first")
            tell("Pod", "elsewhere")
            tell("Pod", "first", message="now", count=2)
            time.sleep(0.01)
        tell("Pod", "first", series={"count": 4}, type="Normal", message="a\x1b")
        tell("Pod", "first", involvedObject="odd")
        tell("Pod", "first", involvedObject=about | {"apiVersion": "a/v1"})
        tell("Pod", "first", count="odd", reason=None, type=None)
        pods.cluster.delete("pods", "first")
        lines = [run.read_line()]
        while not lines[-1].startswith("DELETED    first "):
            lines.append(run.read_line())

    assert {line.index("BackOff") for line in lines if "now" in line} == {header.index("READY")}
    words = dict.fromkeys(" ".join(line.split()) for line in lines[:-1])
    assert list(words) == [
        "WARNING first BackOff: now (x2)",
        "NORMAL first BackOff: a\ufffd (x4)",
        "NORMAL first -: of first",
    ]


def test_kubernetes_events_of_a_cluster_scoped_object_are_in_the_namespace_default(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.cluster.create("nodes", {"metadata": {"name": "node-1"}})
    about = {"kind": "Node", "name": "node-1", "namespace": "default"}
    with cli.started("watch", "nodes", "-n", "web", "--events", "-o", "name") as run:
        assert run.read_line() == "node/node-1\n"
        for number in count():
            server.cluster.create(
                "events", {"metadata": {"name": f"e-{number}"}, "involvedObject": about}
            )
            if run.out.pending(0.01):
                break
        assert run.read_line().startswith("event/e-")


def test_colours_can_be_switched_on_in_a_pipe_and_off_in_a_terminal(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", "pods", "--color", "always") as run:
        assert "\x1b[1mEVENT\x1b[0m" in run.read_line()
        assert "\x1b[32mRunning\x1b[0m" in run.read_line()
    with cli.in_terminal("watch", "pods", "--color", "never") as run:
        assert "\x1b" not in run.out.read_until("Running")


@pytest.mark.parametrize(
    ("variable", "value", "colour"),
    [
        ("LANG", "C", True),
        ("NO_COLOR", "1", False),
        ("NO_COLOR", "", True),
        ("TERM", "dumb", False),
    ],
)
def test_a_terminal_has_colours_unless_they_are_switched_off(
    variable: str,
    value: str,
    colour: bool,
    pods: ApiServerThread,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """https://no-color.org: set and not empty."""
    monkeypatch.setenv(variable, value)
    with cli.in_terminal("watch", "pods") as run:
        assert ("\x1b[32mRunning" in run.out.read_until("Running")) is colour


def test_characters_that_the_locale_lacks_become_question_marks_except_in_json(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a", "annotations": {"a": "×"}}})
    fields = "fields=metadata.annotations"
    with cli.started("watch", "pods", "-o", fields, encoding="ascii") as run:
        run.read_line()
        assert run.read_line().split()[1] == '{"a":"?"}'
    with cli.started("watch", "pods", "-o", "json", encoding="ascii") as run:
        assert "×" in run.read_line()


# -- how it ends -------------------------------------------------------------------------------


def test_watch_ends_without_a_message_when_the_reader_closes_the_pipe(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    """Like ``| head -1``; nothing further has to happen in the cluster for it."""
    reading, writing = os.pipe()
    with cli.started("watch", "pods", stdout=writing) as run:
        os.close(writing)
        shown = b""
        while b"first" not in shown:
            shown += os.read(reading, 4096)
        time.sleep(0.05)  # the command waits
        os.close(reading)
        assert run.wait() == (141, "", "")


def test_a_reader_that_has_left_before_the_first_line_ends_the_command(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with cli.started("wait", "pod/first", "--for=create", stdout=writing) as run:
        os.close(writing)
        assert run.wait() == (141, "", "")


def test_an_output_that_takes_nothing_is_an_error_in_one_line(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    said = "aioinformer: stdout: No space left on device\n"
    with (
        Path("/dev/full").open("wb") as full,
        cli.started("watch", "pods", stdout=full.fileno()) as run,
    ):
        assert run.wait() == (1, "", said)


def _until_full(reading: int) -> None:
    """Wait until a pipe takes no more; 64 KiB on Linux."""
    waiting = array("i", [0])
    while waiting[0] < 60_000:
        time.sleep(0.002)
        fcntl.ioctl(reading, termios.FIONREAD, waiting)


def test_a_paused_reader_does_not_prevent_a_signal_from_ending_the_watch(
    server: ApiServerThread, cli: CommandLine
) -> None:
    for number in range(400):  # more than a pipe takes
        server.cluster.create("pods", {"metadata": {"name": f"pod-{number}-{'x' * 180}"}})
    reading, writing = os.pipe()
    with cli.started("watch", "pods", stdout=writing) as run:
        assert os.read(reading, 5) == b"EVENT"
        _until_full(reading)
        run.send_signal(signal.SIGTERM)
        assert run.wait() == (143, "", "")
    os.close(writing)
    os.close(reading)


# -- outages -----------------------------------------------------------------------------------


def test_a_lost_connection_is_reported_in_a_line_and_the_watch_continues(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", "pods") as run:
        run.read_line()
        run.read_line()
        pods.cluster.create("pods", {"metadata": {"name": "second"}})
        run.read_line()  # so it watches
        pods.drop_connections()
        said = run.read_stderr_line()
        pods.cluster.create("pods", {"metadata": {"name": "third"}})
        assert run.read_line().split()[:2] == ["ADDED", "third"]

    assert said.startswith("aioinformer: pods in default: ConnectionLost: ")


@pytest.mark.usefixtures("_fast")
def test_an_expired_watch_is_followed_by_a_list_whose_changes_are_printed(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", "pods", "-A") as run:
        run.out.read_until("other")
        run.read_line()
        pods.stop()
        pods.cluster.create("pods", {"metadata": {"name": "later"}})
        pods.cluster.delete("pods", "first")
        pods.cluster.compact()
        pods.restart()
        changes = {tuple(run.read_line().split()[:3]) for _ in range(2)}

    assert changes == {("ADDED", "default", "later"), ("DELETED", "default", "first")}


@pytest.mark.usefixtures("_fast")
def test_a_watch_continues_and_reports_that_requests_succeed_again(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.started("watch", "pods", "-o", "name") as run:
        assert run.read_line() == "pod/first\n"
        for name in ("once", "twice"):
            pods.stop()
            run.err.read_until("aioinformer: pods in default: trying again until interrupted\n")
            pods.restart()
            pods.cluster.create("pods", {"metadata": {"name": name}})
            assert run.read_line() == f"pod/{name}\n"
            run.err.read_until("aioinformer: pods in default: requests succeed again, after ")
        assert run.interrupt()[0] == 130


@pytest.mark.usefixtures("_fast")
def test_in_a_terminal_an_outage_is_shown_until_it_is_over(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    with cli.in_terminal("watch", "pods", "-o", "name") as run:
        run.out.read_until("pod/first")
        pods.stop()
        run.out.read_until("waiting for pods in default: next attempt in ")
        pods.restart()
        pods.cluster.create("pods", {"metadata": {"name": "back"}})
        back = run.out.read_until("pod/back\r\n")
        run.interrupt()

    assert back.endswith("\r\x1b[Kpod/back\r\n"), "in a line of its own"


@pytest.mark.usefixtures("_fast")
def test_a_terminal_shows_the_progress_of_the_initial_list(
    server: ApiServerThread, cli: CommandLine
) -> None:
    for number in range(600):
        server.cluster.create("pods", {"metadata": {"name": f"pod-{number}"}})
    slow = server.faults.latency(0.3, verb="list")
    with cli.in_terminal("watch", "pods", "-o", "name") as run:
        said = run.out.read_until("%)")
        slow.end()
        run.out.read_until("pod/pod-599")

    assert "pods in default: 500 of 600 items (83%)" in said


@pytest.mark.usefixtures("_fast")
def test_a_terminal_says_that_a_server_does_not_answer(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    stalled = pods.faults.stall(verb="list")
    with cli.in_terminal("watch", "pods") as run:
        said = run.out.read_until("listing for 2 s")
        stalled.end()
        run.out.read_until("first")

    assert "waiting for pods in default: listing for 2 s" in said


@pytest.mark.usefixtures("_fast")
def test_a_server_that_refuses_watches_is_polled_and_no_outage(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    refused = pods.faults.status(405, verb="watch")
    with cli.started("watch", "pods", "-o", "name") as run:
        assert run.read_line() == "pod/first\n"
        run.read_stderr_line()
        assert not run.err.pending(0.1)
        assert "trying again" not in run.interrupt()[2]
    assert refused.hits


def test_verbose_logs_everything(pods: ApiServerThread, cli: CommandLine) -> None:
    with cli.started("-v", "watch", "pods") as run:
        run.read_line()
        assert re.match(r"\d\d:\d\d:\d\d\.\d{3} \w+ aioinformer\.", run.read_stderr_line())


# -- a list that is forbidden ------------------------------------------------------------------


@pytest.mark.usefixtures("_fast")
def test_a_forbidden_list_is_reported_once_and_retried(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    forbidden = pods.faults.forbid(resource="pods")
    with cli.started("watch", "pods") as run:
        first = run.read_stderr_line()
        assert run.read_stderr_line() == (
            "aioinformer: pods in default: trying again until interrupted\n"
        )
        poll(lambda: forbidden.hits >= 3)
        code, out, err = run.interrupt()

    assert first.startswith("aioinformer: pods in default: Forbidden: ")
    assert (code, out, err) == (130, "", ""), "the same rejection again says nothing new"


@pytest.mark.usefixtures("_fast")
def test_a_terminal_shows_the_time_until_the_next_attempt(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    pods.faults.forbid(resource="pods")
    with cli.in_terminal("watch", "pods") as run:
        run.out.read_until("waiting for pods in default: next attempt in ")
        assert run.interrupt()[0] == 130


# -- what can't be -----------------------------------------------------------------------------


def _refusal(cli: CommandLine, *argv: str) -> tuple[int, str]:
    """Return the exit code and the one line on stderr."""
    code, out, err = cli.run("watch", *argv)
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("aioinformer: ")
    return code, err.removeprefix("aioinformer: ").rstrip()


def test_the_error_without_a_cluster_names_the_sources_that_were_tried(
    cli: CommandLine, tmp_path: Path
) -> None:
    code, said = _refusal(cli, "pods")

    assert code == 2
    assert said.startswith("no cluster is configured: ")
    assert "$KUBECONFIG" in said
    assert f"{tmp_path}/.kube/config" in said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("pods --context mars", ".*'mars'.*"),
        ("podz", ".*'podz'.*did you mean pod.*"),
        ("pods --field-selector spec.colour=red", ".*field label not supported: spec.colour.*"),
    ],
)
def test_what_the_cluster_does_not_have_ends_the_watch(
    argv: str, said: str, server: ApiServerThread, cli: CommandLine
) -> None:
    code, found = _refusal(cli, *argv.split())

    assert code == 2
    assert re.fullmatch(said, found)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("-l", "a in ("), r"--selector 'a in \(': .*, at the end"),
        (("-l", "a=b=c"), "--selector 'a=b=c': .*"),
        (("-n", "Bad_NS"), "--namespace: a namespace is a DNS label .*, not 'Bad_NS'"),
        (("-n", "a/b"), "--namespace: a namespace is a DNS label .*, not 'a/b'"),
        (("-n", "x" * 64), "--namespace: a namespace is a DNS label .*, not 'x{64}'"),
        (("-s", "no url"), "--server: .*"),
    ],
)
def test_a_malformed_value_is_rejected_before_the_cluster_is_read(
    argv: tuple[str, ...], said: str, cli: CommandLine
) -> None:
    code, found = _refusal(cli, "pods", *argv)

    assert code == 2
    assert re.fullmatch(said, found)


def test_a_context_with_a_malformed_namespace_is_rejected_in_one_line(
    cli: CommandLine, tmp_path: Path
) -> None:
    config: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [
            {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "Bad_NS"}}
        ],
        "current-context": "c",
    }
    (path := tmp_path / "config").write_text(json.dumps(config))
    code, said = _refusal(cli, "pods", "--kubeconfig", str(path))

    assert code == 2
    assert said.startswith("the namespace of the context: a namespace is a DNS label ")
    assert said.endswith(", not 'Bad_NS'")


def test_an_unreachable_server_is_named(server: ApiServerThread, cli: CommandLine) -> None:
    server.stop()
    code, said = _refusal(cli, "pods")

    assert code == 1
    assert server.url.removeprefix("http://") in said


def test_a_wrong_token_is_reported_without_the_token(
    server: ApiServerThread, cli: CommandLine, tmp_path: Path
) -> None:
    wrong = ApiServer(port=int(server.url.rpartition(":")[2]), token="secret-2")
    code, said = _refusal(cli, "pods", "--kubeconfig", str(wrong.kubeconfig(tmp_path / "wrong")))

    assert code == 1
    assert "401 Unauthorized" in said
    assert "secret-2" not in said
