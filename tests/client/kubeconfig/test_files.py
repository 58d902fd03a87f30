"""Files that can't be read or are refused."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from aiohttp import web

from aioinformer.errors import ConfigurationError
from tests.client.kubeconfig.kubectl_cases import (
    BOMB,
    CLUSTERS,
    TOKEN,
    flag,
    impersonating,
    named,
    password,
    user,
    with_users,
)
from tests.client.kubeconfigs import (
    CANARY,
    connect,
    error_chain_text,
    load_error,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import http_server

# -- what is refused ---------------------------------------------------------------------------

QUOTE = "must be a text: put it in quotes"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", " is empty: it has no clusters, contexts or users; put the cluster's"),
        (" \n", " is empty"),
        ("# canary-7c21", " is empty"),
        ("{}", " is empty"),
        ("[1, 2]", " is not a YAML mapping, as a kubeconfig must be; is it the right file?"),
        ("canary-7c21\0", " is not UTF-8 text, as a kubeconfig must be; is it the right file?"),
        ("users: [{name: a}]", " has no current context; it has no contexts"),
        ("users: [{user: {token: canary-7c21}}]", " is not a kubeconfig: users[0] has no name"),
        ("clusters: canary-7c21", " is not a kubeconfig: clusters must be a list"),
        ("contexts: {name: canary-7c21}", " is not a kubeconfig: contexts must be a list"),
        ("users: [{name: a}, canary-7c21]", " is not a kubeconfig: users[1] must be a mapping"),
        ("a: [\n}canary-7c21", " is not valid YAML: see line 2"),
        ("a: [\nb: *canary-7c21", " is not valid YAML: line 2: an anchor is unknown"),
        ("canary-7c21:\n" + "- " * 5000, " is not valid YAML: it is nested too deeply"),
        (with_users("[{name: main, user: [canary-7c21]}]"), ": user 'main' must be a mapping"),
        *(
            (user(f"{key}: canary-7c21"), f": {key} of user 'main' must be a mapping")
            for key in ("exec", "auth-provider")
        ),
        *(
            (user(f"{key}: {{canary-7c21: 1}}"), f": {key} of user 'main' must be a text")
            for key in ("client-certificate", "token")
        ),
        (user("exec: {command: [x]}"), ": exec.command of user 'main' must be a text"),
        *(
            (flag(f"true, {key}: 7210045"), f": {key} of cluster 'main' {QUOTE}")
            for key in (
                *("server", "tls-server-name", "proxy-url"),
                *("certificate-authority", "certificate-authority-data"),
            )
        ),
        (password("7210045"), f": password of user 'main' {QUOTE}"),
        (user("token: 7210045"), f": token of user 'main' {QUOTE}"),
        (user("username: on", "password: x"), f": username of user 'main' {QUOTE}"),
        (user("exec: {args: [-v, 7210045]}"), f": exec.args[1] of user 'main' {QUOTE}"),
        (user("exec: {args: 5}"), ": exec.args of user 'main' must be a list"),
        (user("exec: {env: [canary-7c21]}"), ": exec.env[0] of user 'main' must be a mapping"),
        (user("as: [canary-7c21]"), ": as of user 'main' must be a text"),
        (
            impersonating("as-user-extra: [canary-7c21]"),
            ": as-user-extra of user 'main' must be a mapping",
        ),
        (
            impersonating("as-user-extra: {scopes: canary-7c21}"),
            ": as-user-extra.* of user 'main' must be a list",
        ),
        (user("exec: {args: [a, ~]}"), f": exec.args[1] of user 'main' {QUOTE}"),
        (
            user("exec: {env: [{name: A, value: 7210045}]}"),
            f": exec.env[0].value of user 'main' {QUOTE}",
        ),
        (
            user("auth-provider: {config: {x: 7210045}}"),
            f": auth-provider.config.* of user 'main' {QUOTE}",
        ),
        (impersonating("as-groups: [7210045]"), f": as-groups[0] of user 'main' {QUOTE}"),
        (
            impersonating("as-groups: canary-7c21"),
            ": as-groups of user 'main' must be a list",
        ),
        (user("token: [canary-7c21]"), ": token of user 'main' must be a text"),
        (
            TOKEN.replace("cluster: main, ", "cluster: 7210045, "),
            f": cluster of context 'main' {QUOTE}",
        ),
        (named("2024"), f" is not a kubeconfig: clusters[0].name {QUOTE}"),
        (
            TOKEN.replace("context: main", "context: 7210045", 1),
            f" is not a kubeconfig: current-context {QUOTE}",
        ),
        (TOKEN + "- user: {token: x}\n", " is not a kubeconfig: users[1] has no name"),
        (
            TOKEN + "- name: main\n",
            " is not a kubeconfig: two users have the name 'main': rename one",
        ),
        (
            TOKEN.replace("kind: Config", "kind: Deployment"),
            " is not a kubeconfig: its apiVersion and kind must be v1 and Config",
        ),
        (
            user("token: canary-7c21") + BOMB,
            " is not valid YAML: line 18: document contains excessive aliasing",
        ),
        (user("token: !!int canary-7c21"), " is not valid YAML: line 13: a value is not of the"),
        (user("token: !!binary canary-7c21*"), " is not valid YAML: line 13: !!binary value"),
        (user("token: 'canary-7c21"), " is not valid YAML: see line 14"),
    ],
)
async def test_what_is_wrong_with_a_file_is_named_and_not_quoted(
    tmp_path: Path, content: str, message: str
) -> None:
    path = write_kubeconfig(tmp_path, content)

    with pytest.raises(ConfigurationError) as caught:
        await connect(path).__aenter__()

    assert str(caught.value).startswith(f"{path}{message}")
    said = error_chain_text(caught.value)
    assert CANARY not in said
    assert "7210045" not in said


@pytest.mark.parametrize("value", ["'true'", "'no'", "1"])
async def test_a_certificate_check_is_not_switched_off_by_a_value_that_is_no_boolean(
    tmp_path: Path, value: str
) -> None:
    path = write_kubeconfig(tmp_path, flag(value))

    assert await load_error(path) == (
        f"{path}: insecure-skip-tls-verify of cluster 'main' must be true or false, without quotes"
    )


async def test_the_frames_of_an_error_hold_no_content_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback with local variables shows these."""
    good = write_kubeconfig(tmp_path, user(f"token: {CANARY}"), "good")
    bad = write_kubeconfig(tmp_path, user(f"token: {CANARY}", "password: 5"), "bad")
    monkeypatch.setenv("KUBECONFIG", f"{good}{os.pathsep}{bad}")

    with pytest.raises(ConfigurationError) as caught:
        await connect().__aenter__()

    frames = [entry.frame.f_locals for entry in caught.traceback[1:]]
    assert frames
    assert CANARY not in repr(frames)


# -- what can't be read ------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["path", "$KUBECONFIG", "a list", "$HOME"])
async def test_a_place_that_may_not_be_read_is_named(
    forbidden: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = forbidden / "config"
    listed = {"$KUBECONFIG": f"{path}", "a list": f"/missing{os.pathsep}{path}"}
    monkeypatch.setenv("KUBECONFIG", listed.get(place, ""))
    monkeypatch.setenv("HOME", str(forbidden))

    message = await load_error(path if place == "path" else None)

    named = forbidden / ".kube" / "config" if place == "$HOME" else path
    assert message == (
        f"{named} can't be read: Permission denied: may this user read the file, and enter its "
        "folders? $KUBECONFIG names another file, or /dev/null for none"
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("a folder", "Is a directory"),
        ("a loop of links", "Too many levels of symbolic links"),
        ("a name that is too long", "File name too long"),
    ],
)
async def test_a_path_that_is_no_file_is_named(tmp_path: Path, kind: str, reason: str) -> None:
    path = tmp_path / ("x" * 300 if "long" in kind else "config")
    if kind == "a folder":
        path.mkdir()
    elif kind == "a loop of links":
        path.symlink_to(path)

    assert await load_error(path) == f"{path} can't be read: {reason}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no cluster is configured: {path} is empty, and this is not a pod; put your"),
        (TOKEN.replace("current-context: main", ""), "{path} has no current context; it has main"),
        (TOKEN.replace(CLUSTERS, ""), "{path}: context 'main' names cluster 'main', which does"),
    ],
)
async def test_the_error_outside_of_a_pod_says_what_the_file_lacks(
    tmp_path: Path,
    content: str,
    message: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    path = write_kubeconfig(tmp_path, content)
    monkeypatch.setenv("KUBECONFIG", str(path))

    assert (await load_error()).startswith(message.format(path=path))
    assert caplog.messages == []


# -- compression -------------------------------------------------------------------------------


@pytest.mark.parametrize("disabled", [False, True])
async def test_a_cluster_may_disable_compression(tmp_path: Path, disabled: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Accept-Encoding"])

    async with http_server(answer) as server:
        cluster = {"server": server, "disable-compression": disabled}
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))
        async with connect(path) as client:
            assert await client.get_raw("/") == (b"identity" if disabled else b"gzip")
