"""Contexts of kubeconfig files, by name, and how their users show who they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aioinformer._cli.cluster_options import (
    NamedContext,
    credential_kind,
    kubeconfig_paths,
    read_contexts,
)
from aioinformer._client.kubeconfig.context import Context

CONTEXTS = """\
contexts:
- {name: main, context: {cluster: c, user: u, namespace: web}}
- {name: other, context: {cluster: c}}
- odd
- {name: 3}
users: [{name: u, user: {token: secret-1}}]
"""


def test_contexts_have_names_and_some_a_namespace(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(CONTEXTS)

    assert list(read_contexts([path])) == [NamedContext("main", "web"), NamedContext("other")]


@pytest.mark.parametrize("text", ["", "- a", "contexts: 3", "a: [", "\x00", "contexts: {a: b}"])
def test_a_file_that_is_not_a_kubeconfig_has_no_contexts(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    assert list(read_contexts([path, tmp_path / "missing"])) == []


def test_files_are_chosen_as_kubectl_chooses_them(tmp_path: Path) -> None:
    home, named = tmp_path / ".kube" / "config", tmp_path / "named"
    home.parent.mkdir()
    home.touch()
    named.touch()
    several = {"HOME": str(tmp_path), "KUBECONFIG": f"{named}:{tmp_path / 'missing'}"}

    assert kubeconfig_paths(None, {"HOME": str(tmp_path)}) == [home]
    assert kubeconfig_paths(None, several) == [named]
    assert kubeconfig_paths(Path("~/named"), several) == [named]


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ({}, "none (anonymous)"),
        ({"token": "secret-1"}, "token"),
        ({"tokenFile": "/run/secret-1", "token": "secret-1"}, "token file"),
        ({"username": "u", "password": "secret-1"}, "user and password"),
        ({"exec": {"command": "/opt/bin/aws", "args": ["secret-1"]}}, "exec plugin aws"),
        ({"auth-provider": {"name": "oidc"}}, "id-token of an auth-provider"),
        ({"client-certificate-data": "secret-1"}, "client certificate"),
        ({"token": "secret-1", "client-certificate": "c"}, "token and client certificate"),
        ({"token": "secret-1", "as": "jane"}, "token, impersonates jane"),
    ],
)
def test_the_kind_of_credentials_is_shown_without_a_secret(user: dict[str, Any], kind: str) -> None:
    assert credential_kind(Context("here", {}, user)) == kind
