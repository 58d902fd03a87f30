"""``aioinformer serve``: what it serves, and mistakes in its arguments."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import ApiServerThread
from tests.cli.commands import CommandLine, RunningCommand, poll


class Served:
    """A running ``aioinformer serve``."""

    def __init__(self, run: RunningCommand) -> None:
        self.run = run
        self.text = run.out.read_until("Ctrl-C ends the server\n")
        found = re.match(r"serving at http://(127\.0\.0\.1:\d+) \((.*)\)\n", self.text)
        assert found, self.text + run.wait()[2]
        self._address, self.contents = found.groups()
        kubeconfig = re.search(r"export KUBECONFIG=(.*)\n", self.text)
        assert kubeconfig
        self.kubeconfig = Path(kubeconfig[1])

    def request(
        self, path: str, headers: Mapping[str, str] | None = None, *, patch: str | None = None
    ) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        kind = {"Content-Type": "application/merge-patch+json"} if patch else {}
        with closing(HTTPConnection(self._address)) as connection:
            connection.request("PATCH" if patch else "GET", path, patch, kind | dict(headers or {}))
            response = connection.getresponse()
            return response.status, json.loads(response.read())


@contextmanager
def served(cli: CommandLine, *argv: str) -> Generator[Served]:
    with cli.started("serve", "--port", "0", *argv) as run:
        yield Served(run)


def test_pods_change_until_a_signal_and_the_kubeconfig_is_a_temporary_file(
    cli: CommandLine,
) -> None:
    with served(cli, "--objects", "30", "--rate", "500", "--seed", "3") as it:
        assert it.contents == "Kubernetes 1.36; about 30 pods, 500 changes a second"
        assert it.kubeconfig.exists()
        _, first = it.request("/api/v1/pods")
        assert len(first["items"]) == 30
        poll(lambda: it.request("/api/v1/pods")[1]["items"] != first["items"])
        it.run.send_signal(signal.SIGTERM)
        assert it.run.wait() == (128 + signal.SIGTERM, "", "")
    assert not it.kubeconfig.exists()


def test_manifests_and_features_are_loaded(cli: CommandLine, tmp_path: Path) -> None:
    kinds = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab"]
    (tmp_path / "maps.yaml").write_text("\n---\n".join(map(json.dumps, kinds)))
    features = "minor=37, watch_list=false,"
    with served(cli, "--load", str(tmp_path / "maps.yaml"), "--features", features) as it:
        assert it.contents == "Kubernetes 1.37; 2 objects from manifests"
        assert len(it.request("/api/v1/configmaps")[1]["items"]) == 2
        assert it.request("/version")[1]["minor"] == "37"


def test_a_kubeconfig_at_a_given_path_stays_after_the_end(cli: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    with served(cli, "--objects", "0", "--kubeconfig", str(config)) as it:
        assert it.kubeconfig == config
        assert config.stat().st_mode & 0o777 == 0o600
        assert it.run.interrupt()[0] == 128 + signal.SIGINT
    assert config.exists(), "the user's own file"


def test_a_token_is_required_with_the_option_and_only_the_kubeconfig_shows_it(
    cli: CommandLine,
) -> None:
    with served(cli, "--objects", "3", "--rate", "0", "--token") as it:
        token = json.loads(it.kubeconfig.read_text())["users"][0]["user"]["token"]
        assert len(token) > 40
        for headers, status in (({}, 401), ({"Authorization": f"Bearer {token}"}, 200)):
            for path in ("/api/v1/pods", "/version"):
                assert it.request(path, headers)[0] == status
        _, rest, complaints = it.run.interrupt()
    assert "kubectl gets 401 from this server" in it.text
    assert token not in it.text + rest + complaints


def test_hosts_of_the_option_and_no_others_are_answered(cli: CommandLine) -> None:
    with served(cli, "--objects", "0", "--accept-hosts", "api.test, 10.0.0.9") as it:
        for name, status in (("api.test:80", 200), ("10.0.0.9", 200), ("rebound.example", 403)):
            assert it.request("/version", {"Host": name})[0] == status


@pytest.mark.usefixtures("_fast")
def test_a_rollout_of_a_served_deployment_is_complete_after_a_while(cli: CommandLine) -> None:
    with served(cli, "--rate", "0") as it:
        path = "/apis/apps/v1/namespaces/shop/deployments/web"
        patch = '{"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}'
        assert it.request(path, patch=patch)[1]["metadata"]["generation"] == 2

        def complete() -> bool:
            found = it.request(path)[1]
            status, replicas = found["status"], found["spec"]["replicas"]
            counts = [status.get(f"{name}Replicas") for name in ("updated", "available")]
            return bool(status["observedGeneration"] == 2 and counts == [replicas, replicas])

        poll(complete, every=0.2)


# -- mistakes ------------------------------------------------------------------------------------


def test_a_port_in_use_is_named(server: ApiServerThread, cli: CommandLine) -> None:
    port = server.url.rpartition(":")[2]
    assert cli.run("serve", "--port", port, "--objects", "0") == (
        2,
        "",
        f"aioinformer: --port {port}: the port is in use; stop its server, or let --port 0 find a "
        "free one\n",
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--kubeconfig", "/no/folder/k"), "--kubeconfig /no/folder/k: No such file or directory"),
        (
            ("--accept-hosts", "api.test,*"),
            "--accept-hosts: '*' is not a host; give a name or an address, such as 'api.test' or "
            "'[fd00::1]'",
        ),
        (
            ("--features", "minro=37"),
            "--features: unknown feature 'minro'; known: minor, watch_list",
        ),
        (("--features", "minor=true"), "--features: minor must be a number, not true"),
        (("--features", "watch_list=1"), "--features: watch_list must be true or false, not 1"),
    ],
)
def test_a_mistake_is_named_in_one_line(argv: tuple[str, ...], said: str, cli: CommandLine) -> None:
    code, out, err = cli.run("serve", "--port", "0", "--objects", "0", *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"aioinformer: {said}")
