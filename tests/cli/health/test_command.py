"""``aioinformer health``: checks, the report, and the exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer.testing import ApiServerThread, Cluster, Features
from tests.cli.commands import CommandLine
from tests.cli.conftest import Enter
from tests.client.servers import http_server


@pytest.fixture
def pods(server: ApiServerThread) -> ApiServerThread:
    """Return a server with two pods."""
    for name in ("a", "b"):
        server.cluster.create("pods", {"metadata": {"name": name, "namespace": "web"}})
    return server


def found(cli: CommandLine, *argv: str, code: int = 0) -> dict[str, Any]:
    """Return the report of one resource."""
    ended, out, err = cli.run("health", *argv, "-o", "json")
    document = json.loads(out)
    assert (ended, err) == (code, "")
    assert document["ok"] is document["resources"][0]["ok"] is (code == 0)
    assert "secret-1" not in out
    return dict(document["resources"][0])


# -- what is found -----------------------------------------------------------------------------


def test_a_resource_that_works_is_listed_watched_and_synced(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    finding = found(cli, "po", "-A")

    assert finding.pop("size") > 500
    assert 0 < finding.pop("synced") < 10
    assert finding == {
        "resource": "pods",
        "scope": "all",
        "lists": True,
        "watches": True,
        "strategy": "watchlist",
        "bookmarks": True,
        "objects": 2,
        "note": "",
        "error": "",
        "ok": True,
    }


def test_a_server_without_watch_lists_is_listed(cli: CommandLine) -> None:
    with ApiServerThread(Cluster(features=Features(watch_list=False))) as server:
        finding = found(cli, "pods", "-n", "web", "-s", server.url)

    assert (finding["scope"], finding["strategy"], finding["objects"]) == ("web", "list", 0)
    assert finding["bookmarks"] is None, "none has come yet"


def test_cluster_scoped_resources_have_no_namespace(
    server: ApiServerThread, cli: CommandLine
) -> None:
    assert found(cli, "nodes", "-n", "web")["scope"] == "all"


def test_a_group_is_part_of_the_name(server: ApiServerThread, cli: CommandLine) -> None:
    assert found(cli, "deploy")["resource"] == "deployments.apps"


def test_the_error_for_a_forbidden_list_contains_a_solution(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    pods.faults.forbid(resource="pods")
    finding = found(cli, "pods", code=1)

    assert (finding["lists"], finding["watches"], finding["synced"]) == (False, None, None)
    assert "403 Forbidden: pods is forbidden: " in finding["error"]
    assert "cannot list" in finding["error"]
    assert "log in again, or get a fresh kubeconfig" in finding["error"]


def test_a_forbidden_watch_is_distinguished_from_a_forbidden_list(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    pods.faults.forbid(verb="watch")
    finding = found(cli, "pods", code=1)

    assert (finding["lists"], finding["watches"]) == (True, False)
    assert "cannot watch" in finding["error"]


def test_an_unknown_resource_is_reported_with_a_suggestion(
    server: ApiServerThread, cli: CommandLine
) -> None:
    finding = found(cli, "podz", code=1)

    assert (finding["resource"], finding["lists"]) == ("podz", None)
    assert "did you mean pods?" in finding["error"]


@pytest.mark.usefixtures("_fast")
def test_a_server_that_ignores_the_parameters_of_a_watch_list_is_listed_with_a_note(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    """As Kubernetes before 1.27 does: the stream never says where the state ends."""
    pods.faults.endless_watch_list()
    code, out, _ = cli.run("health", "pods", "-n", "web", "--timeout", "3")

    assert code == 0
    assert re.search(r"^pods +web +yes +yes +list +- +2 ", out, re.MULTILINE)
    assert out.splitlines()[-1].startswith("pods: this server does not complete a WatchList")
    assert "watch_list=False" in out


def test_a_watch_list_that_is_merely_slow_is_not_taken_for_an_endless_one(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    pods.faults.drip(size=5, every=0.02, verb="watch")
    finding = found(cli, "pods", "-n", "web", "--timeout", "0.8", code=1)

    assert (finding["strategy"], finding["note"]) == ("watchlist", "")
    assert "0.8 s" in finding["error"]


@pytest.mark.usefixtures("_fast")
def test_the_error_for_a_slow_initial_list_contains_the_timeout(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    body = {"metadata": {"name": "c", "namespace": "web"}, "data": "x" * 9000}
    pods.cluster.create("pods", body)
    # Lists of one object and the opened watch get through; whole states don't.
    pods.faults.endless_watch_list()
    pods.faults.stall(verb="list", after=5000)
    finding = found(cli, "pods", "-n", "web", "--timeout", "3", code=1)

    assert (finding["lists"], finding["watches"], finding["synced"]) == (True, True, None)
    assert "3 s" in finding["error"]


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize(("verb", "subject"), [("list", "pods"), ("get", "server")])
def test_a_server_that_accepts_requests_but_does_not_answer_is_reported(
    verb: Any, subject: str, pods: ApiServerThread, cli: CommandLine
) -> None:
    pods.faults.stall(verb=verb)
    code, out, _ = cli.run("health", "pods", "--timeout", "2")

    assert code == 1
    assert out.splitlines()[-1] == f"{subject}: the server has not answered within 2 s"


def test_a_server_that_hides_its_version_and_its_users_is_reported_without_an_error(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    pods.faults.status(403, reason="Forbidden", verb="get", times=1)
    pods.faults.status(404, resource="selfsubjectreviews")
    code, out, _ = cli.run("health", "pods")

    assert (code, out.splitlines()[0]) == (0, f"server       {pods.url} (version not readable)")
    assert "latency" not in out
    assert "\nuser" not in out


def test_a_server_that_is_no_api_server_has_an_unknown_version(
    cli: CommandLine, enter: Enter
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    url = enter(http_server(answer))
    code, out, _ = cli.run("health", "pods", "-s", url)

    assert code == 1
    assert out.startswith(f"server       {url} unknown\ncredentials  none (anonymous)\n")


# -- the report --------------------------------------------------------------------------------


def test_a_default_selection_of_resources_is_checked(
    pods: ApiServerThread, cli: CommandLine, tmp_path: Path
) -> None:
    code, out, err = cli.run("health", "-n", "web")

    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"server       {pods.url} v1.36.0"
    assert lines[1].startswith("credentials  token (context ")
    assert lines[1].endswith(f", {tmp_path / 'config'})")
    assert lines[2] == "user         admin (groups system:masters, system:authenticated)"
    assert re.fullmatch(
        r"latency      median [\d.]+ ms, slowest [\d.]+ ms, first [\d.]+ ms", lines[3]
    )
    rows = [line.split() for line in lines[5:]]
    assert " ".join(rows[0]) == "RESOURCE SCOPE LIST WATCH STRATEGY BOOKMARKS OBJECTS SIZE SYNC"
    assert rows[1][:7] == ["pods", "web", "yes", "yes", "watchlist", "yes", "2"]
    names = ["pods", "services", "deployments.apps", "namespaces", "nodes"]
    assert [row[0] for row in rows[1:]] == names
    assert "secret-1" not in out


def test_a_failure_is_a_line_below_the_table(pods: ApiServerThread, cli: CommandLine) -> None:
    pods.faults.forbid(resource="nodes")
    code, out, _ = cli.run("health", "nodes", "pod\x1b", "--color", "always")

    nodes, podz, _, first, second = out.splitlines()[-5:]
    assert code == 1
    assert nodes.replace(" ", "") == "nodesall\x1b[31mno\x1b[0m\x1b[2m-\x1b[0m-\x1b[2m-\x1b[0m---"
    assert podz.split()[0] == "pod\N{REPLACEMENT CHARACTER}"
    assert first.startswith("\x1b[1mnodes: \x1b[0m")
    assert second.startswith("\x1b[1mpod\N{REPLACEMENT CHARACTER}: \x1b[0m")


def test_json_is_one_document_and_a_failure_is_code_1(
    pods: ApiServerThread, cli: CommandLine
) -> None:
    code, out, _ = cli.run("health", "pods", "podz", "-A", "-o", "json")
    document = json.loads(out)

    assert code == 1
    assert document["ok"] is False
    assert [each["ok"] for each in document["resources"]] == [True, False]
    assert document["server"]["version"] == "v1.36.0"
    assert 0 < document["server"]["latency"] <= document["server"]["slowest"]


def test_a_terminal_shows_what_is_being_checked(pods: ApiServerThread, cli: CommandLine) -> None:
    with cli.in_terminal("health", "pods") as run:
        _, out, _ = run.wait()

    assert f"checking {pods.url}" in out
    assert "\r\x1b[Kchecking pods\r\x1b[K" in out


def test_an_unreachable_server_is_reported_with_exit_code_1(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.stop()
    code, out, err = cli.run("health")

    assert (code, err) == (1, "")
    assert "Connection refused; nothing listens there" in out.splitlines()[-1]


# -- credentials -------------------------------------------------------------------------------

EXEC_VERSION = "client.authentication.k8s.io/v1"
EXEC_CREDENTIAL = {
    "apiVersion": EXEC_VERSION,
    "kind": "ExecCredential",
    "status": {"token": "secret-1"},
}


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ({}, "none (anonymous)"),
        ({"token": "secret-1"}, "token"),
        ({"tokenFile": "token", "token": "secret-1"}, "token file"),
        ({"username": "u", "password": "secret-1"}, "user and password"),
        (
            {
                "exec": {
                    "apiVersion": EXEC_VERSION,
                    "command": "./aws",
                    "args": ["secret-1"],
                    "interactiveMode": "Never",
                }
            },
            "exec plugin aws",
        ),
        (
            {"auth-provider": {"name": "oidc", "config": {"id-token": "secret-1"}}},
            "id-token of an auth-provider",
        ),
        ({"client-certificate": "c", "client-key": "k"}, "client certificate"),
        (
            {"token": "secret-1", "client-certificate": "c", "client-key": "k"},
            "token and client certificate",
        ),
        ({"token": "secret-1", "as": "jane"}, "token, impersonates jane"),
    ],
)
def test_the_kind_of_credentials_is_shown_without_a_secret(
    user: dict[str, Any], kind: str, server: ApiServerThread, cli: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    config = json.loads(path.read_text())
    config["users"][0]["user"] = user
    path.write_text(json.dumps(config))
    for name in ("token", "c", "k"):
        (tmp_path / name).write_text("secret-1")
    (plugin := tmp_path / "aws").write_text(f"#!/bin/sh\necho '{json.dumps(EXEC_CREDENTIAL)}'\n")
    plugin.chmod(0o700)
    server.stop()
    _, out, err = cli.run("health", "pods")

    assert f"credentials  {kind} (context " in out, err
    assert "secret-1" not in out + err


def test_kubeconfigs_are_chosen_as_kubectl_chooses_them(
    server: ApiServerThread, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, named = tmp_path / ".kube" / "config", tmp_path / "config"
    home.parent.mkdir()
    home.write_text(named.read_text())

    def files(*argv: str) -> str:
        _, out, _ = cli.run("health", "pods", *argv)
        return out.splitlines()[1].rpartition(", ")[2]

    monkeypatch.setenv("KUBECONFIG", f"{named}:{tmp_path / 'missing'}")
    assert files() == f"{named})"
    assert files("--kubeconfig", "~/.kube/config") == f"{home})"
    monkeypatch.delenv("KUBECONFIG")
    assert files() == f"{home})"
