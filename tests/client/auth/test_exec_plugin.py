"""Exec plugins: their input, their output, and the errors of their failures."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from aioinformer.errors import ConfigurationError
from tests.client.fake_exec_plugin import V1, V1BETA1, FakePlugin, in_seconds
from tests.client.kubeconfigs import (
    CANARY,
    answer_authorization,
    connect,
    error_chain_text,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import http_server

NOTHING: Mapping[str, Any] = {}
CHECK = "run it in a terminal to see what is wrong: perhaps a login has expired"


async def headers(
    fake: FakePlugin, count: int = 1, cluster: Mapping[str, Any] = NOTHING, **more: Any
) -> list[str]:
    """Return the ``Authorization`` headers of requests."""
    async with http_server(answer_authorization) as server:
        content = make_kubeconfig(cluster={"server": server, **cluster}, user=fake.user(**more))
        async with connect(write_kubeconfig(fake.path.parent, content)) as client:
            return [(await client.get_raw("/")).decode() for _ in range(count)]


async def failure(fake: FakePlugin, **more: Any) -> str:
    return await failure_of(fake.path.parent, fake.user(**more)["exec"])


async def failure_of(folder: Path, section: Mapping[str, Any]) -> str:
    """Return the error of a client with a plugin, and 'here' for the place of its description."""
    path = write_kubeconfig(folder, make_kubeconfig(user={"exec": section}))
    with pytest.raises(ConfigurationError) as caught:
        await connect(path).__aenter__()
    assert CANARY not in error_chain_text(caught.value)
    return str(caught.value).replace(f"{path}: context 'main'", "here")


# -- what it yields ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "status"),
    [
        (V1, {"token": "abc\n"}),
        (V1BETA1, {"token": "abc\n"}),
        # One of the two clocks is wrong; a run for every request would help nobody.
        (V1, {"token": "abc", "expirationTimestamp": in_seconds(-5)}),
        (V1, {"token": "abc", "clientCertificateData": "C", "clientKeyData": "K"}),
    ],
    ids=["no expiry", V1BETA1, "expired", "certificate"],
)
async def test_what_a_plugin_yields_is_valid_until_it_is_rejected(
    tmp_path: Path, version: str, status: Mapping[str, str]
) -> None:
    fake = FakePlugin(tmp_path, version=version)
    fake.set_status(**status)

    assert await headers(fake, 2) == ["Bearer abc"] * 2
    assert fake.runs == 1


# -- its input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [False, True])
async def test_the_plugin_gets_the_cluster_information_that_it_requests(
    tmp_path: Path, wanted: bool
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc")
    cluster = {"server": "http://127.0.0.1:1"}
    user = fake.user(**({"provideClusterInfo": True} if wanted else {}))

    async with connect(write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster, user=user))):
        pass

    spec = {"interactive": False, **({"cluster": cluster} if wanted else {})}
    assert fake.last_exec_info == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}


async def test_the_plugin_gets_its_arguments_and_its_variables(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    answer = json.dumps(
        {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "$1-$WORD"}}
    )
    fake.write_script(f"cat <<END\n{answer}\nEND")
    variables = [{"name": "WORD", "value": "two"}]

    assert await headers(fake, args=["one"], env=variables) == ["Bearer one-two"]


# -- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "hint", "fault"),
    [
        (
            "no-such-tool",
            "brew install\n  it",
            "No such file or directory. To install it: brew install it",
        ),
        (
            "{folder}/missing",
            "",
            "No such file or directory: is it installed, and is `command:` in the kubeconfig "
            "right?",
        ),
        ("{folder}/login", "", "Permission denied: is the file executable (chmod +x)?"),
    ],
)
async def test_the_error_for_a_plugin_that_can_not_be_run_names_the_remedy(
    tmp_path: Path, command: str, hint: str, fault: str
) -> None:
    (tmp_path / "login").write_text("#!/bin/sh")
    command = command.format(folder=tmp_path)
    section = {"apiVersion": V1, "command": command, "installHint": hint}

    assert await failure_of(tmp_path, section) == (
        f"here: the exec plugin '{command}' can't be run: {fault}"
    )


@pytest.mark.parametrize("entry", ["", ".", "./", "tools", "../here/tools"])
@pytest.mark.parametrize("search_path", ["{entry}:/usr/bin:/bin", "/usr/bin:/bin:{entry}"])
async def test_a_plugin_in_a_relative_directory_of_the_search_path_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, search_path: str
) -> None:
    (here := tmp_path / "here").mkdir()
    (folder := here / entry).mkdir(exist_ok=True)
    fake = FakePlugin(folder)
    fake.set_status(token="abc")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", search_path.format(entry=entry))

    assert await failure(fake, command="plugin") == (
        "here: the exec plugin 'plugin' is not run, because $PATH names its directory relative to "
        "the current directory, where anybody may have put it: write absolute directories into "
        "$PATH (an empty entry and '.' are relative), or the absolute path into `command:` of the "
        "kubeconfig"
    )
    assert fake.runs == 0


async def test_a_plugin_is_run_from_the_first_directory_of_the_search_path_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = list[FakePlugin]()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        fakes.append(FakePlugin(tmp_path / name))
        fakes[-1].set_status(token=name)
    folders = [tmp_path / "missing", *(fake.path.parent for fake in fakes)]
    monkeypatch.setenv("PATH", ":".join([*map(str, folders), ".", "/usr/bin", "/bin"]))

    assert await headers(fakes[0], command="plugin") == ["Bearer first"]
    fakes[0].path.chmod(0o644)  # as in a shell, a file that is no program is passed over
    assert await headers(fakes[0], command="plugin") == ["Bearer second"]


@pytest.fixture
def sigchld_ignored(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """Ignore SIGCHLD: the system then keeps the exit code of no child process."""
    caplog.set_level(logging.ERROR, "asyncio")  # which warns of each such process
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("sigchld_ignored")
async def test_a_plugin_works_in_a_program_that_ignores_sigchld(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc")

    assert await headers(fake) == ["Bearer abc"]

    # asyncio can't wait for a program that ends as soon as it has begun.
    fake.write_script("sleep 0.2; echo no lease >&2; exit 1")
    assert await failure(fake) == (
        f"here: the exec plugin '{fake.path}' failed with an unknown code (this program ignores "
        "SIGCHLD): no lease"
    )


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("echo first >&2; echo run: aws sso login >&2; exit 3", "with code 3: run: aws sso login"),
        (
            f"echo 'login failed: the password is {CANARY}' >&2; exit 1",
            "with code 1: login failed: the password is [credential]",
        ),
        ("kill -9 $$", f"by signal 9; {CHECK}"),
    ],
)
async def test_the_error_for_a_failed_plugin_shows_its_end_and_its_last_line(
    tmp_path: Path, script: str, fault: str
) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script(script)

    assert await failure(fake) == f"here: the exec plugin '{fake.path}' failed {fault}"


@pytest.mark.parametrize(
    "complaint",
    [
        f"token={CANARY}",
        f'{{"refresh_token": "{CANARY}"}}',
        f"Authorization: Bearer {CANARY}",
        f"password {CANARY} is wrong",
        f"login failed: the password is {CANARY}",
        f"what is {CANARY}-0123456789abcdef",
        "what is hunter2 or swordfish or tr0ub4dor",
    ],
)
async def test_no_secret_in_stderr_is_shown(tmp_path: Path, complaint: str) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script(f"echo '{complaint}' >&2; exit 1")
    variables = [{"name": "WORD", "value": "hunter2"}]

    arguments = ["--client-secret", "swordfish", "--k=tr0ub4dor"]

    text = await failure(fake, args=arguments, env=variables)

    assert "[credential]" in text
    assert not any(word in text for word in ("hunter2", "swordfish", "tr0ub4dor", CANARY))


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (CANARY, "printed no ExecCredential"),
        (f'["{CANARY}"]', "printed no ExecCredential"),
        ("[" * 100_000, "printed no ExecCredential"),
        (f'{{"kind": "ExecCredential", "apiVersion": "{CANARY}"}}', "printed no ExecCredential of"),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}"}}', "without a status"),
    ],
    ids=["no JSON", "a list", "deep", "another version", "no status"],
)
async def test_output_that_is_no_exec_credential_is_an_error(
    tmp_path: Path, printed: str, text: str
) -> None:
    fake = FakePlugin(tmp_path)
    (tmp_path / "printed").write_text(printed)
    fake.write_script(f"cat {tmp_path / 'printed'}")

    message = await failure(fake)

    assert text in message
    assert message.endswith(f"; {CHECK}")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, "neither a token nor a certificate"),
        ({"token": True}, "an ExecCredential whose token is no text"),
        ({"token": 12345678}, "an ExecCredential whose token is no text"),
        ({"clientCertificateData": ["C"], "clientKeyData": "K"}, "clientCertificateData is no"),
        ({"clientCertificateData": CANARY}, "a certificate without its key"),
        ({"clientKeyData": CANARY}, "a key without its certificate"),
        ({"token": f"{CANARY} x"}, "a token that can't be used: it contains a space"),
        ({"token": CANARY, "expirationTimestamp": "soon"}, "an expirationTimestamp that is no"),
    ],
)
async def test_an_exec_credential_without_a_usable_token_or_certificate_is_an_error(
    tmp_path: Path, status: Mapping[str, str], text: str
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(**status)

    assert text in await failure(fake)


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("head -c 1100000 /dev/zero", "printed more than 1048576 bytes"),
        ("cat /dev/zero & cat /dev/zero", "printed more than 1048576 bytes"),
        (
            "cat /dev/zero >&2 & cat /dev/zero >&2",
            "wrote more than 67108864 bytes of diagnostics",
        ),
    ],
)
async def test_a_plugin_that_prints_too_much_or_without_an_end_is_killed(
    tmp_path: Path, script: str, fault: str
) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script(script)

    async with asyncio.timeout(60):
        message = await failure(fake)
    assert message == f"here: the exec plugin '{fake.path}' {fault}; {CHECK}"


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ({"apiVersion": V1}, "names no command"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}, "v1alpha1"),
        ({"apiVersion": V1, "command": "x", "interactiveMode": "Always"}, "requires a terminal"),
        ({"apiVersion": V1, "command": "x", "env": [{"value": CANARY}]}, "has no name"),
        ({"apiVersion": V1, "command": "x", "env": [{"name": "", "value": CANARY}]}, "no name"),
        ({"apiVersion": V1, "command": "x", "env": [None]}, "has no name"),
    ],
)
async def test_the_error_for_an_invalid_exec_section_names_the_fault(
    tmp_path: Path, section: Mapping[str, Any], text: str
) -> None:
    assert text in await failure_of(tmp_path, section)


@pytest.mark.parametrize("mode", ["Never", "IfAvailable", None])
async def test_a_plugin_that_can_do_without_a_terminal_gets_none(
    tmp_path: Path, mode: str | None
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc")

    await headers(fake, interactiveMode=mode)

    assert fake.last_exec_info["spec"]["interactive"] is False


@pytest.mark.parametrize("entry", [{}, {"value": None}], ids=["none", "null"])
async def test_a_variable_without_value_is_empty(tmp_path: Path, entry: Mapping[str, Any]) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script('echo "FOO is ${FOO-missing}." >&2; exit 1')

    assert (await failure(fake, env=[{"name": "FOO", **entry}])).endswith("FOO is .")


@pytest.mark.parametrize("behind", [f"?token={CANARY}", f" --token={CANARY}"])
async def test_arguments_in_the_command_are_not_shown(tmp_path: Path, behind: str) -> None:
    section = {"apiVersion": V1, "command": f"{tmp_path}/nothing{behind}"}

    text = await failure_of(tmp_path, section)

    assert text.startswith(f"here: the exec plugin '{tmp_path}/nothing' can't be run: No such file")
    assert "v0" in await failure_of(tmp_path, {**section, "apiVersion": "v0"})
