"""Exec plugins: their input, their output, and the errors of their failures."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aioinformer._client.auth.exec_plugin import ExecPlugin, parse_exec_section
from aioinformer._client.auth.token_refresh import CertificatePair, TokenGrant
from aioinformer.errors import ConfigurationError, FetchError
from tests.client.fake_exec_plugin import V1, V1BETA1, FakePlugin, in_seconds
from tests.client.kubeconfigs import CANARY, error_chain_text

NOTHING: Mapping[str, Any] = {}
CHECK = "run it in a terminal to see what is wrong: perhaps a login has expired"


def made(fake: FakePlugin, cluster: Mapping[str, Any] = NOTHING, **more: Any) -> ExecPlugin:
    return ExecPlugin(parse_exec_section(fake.user(**more)["exec"], cluster), "here")


async def failure(plugin: ExecPlugin) -> str:
    with pytest.raises(FetchError) as caught:
        await plugin()
    assert caught.value.phase == "credentials"
    assert CANARY not in error_chain_text(caught.value)
    return str(caught.value)


@contextmanager
def no_free_descriptor() -> Generator[None]:
    """Leave this process no file descriptor."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


# -- what it yields ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "status", "grant"),
    [
        (V1, {"token": "abc\n"}, TokenGrant("Bearer abc")),
        (V1BETA1, {"token": "abc\n"}, TokenGrant("Bearer abc")),
        # One of the two clocks is wrong; a run for every request would help nobody.
        (V1, {"token": "abc", "expirationTimestamp": in_seconds(-5)}, TokenGrant("Bearer abc")),
        (
            V1,
            {"token": "abc", "clientCertificateData": "C", "clientKeyData": "K"},
            TokenGrant("Bearer abc", CertificatePair(b"C", b"K")),
        ),
    ],
    ids=["no expiry", V1BETA1, "expired", "certificate"],
)
async def test_what_a_plugin_yields_is_valid_until_it_is_rejected(
    tmp_path: Path, version: str, status: Mapping[str, str], grant: TokenGrant
) -> None:
    fake = FakePlugin(tmp_path, version=version)
    fake.set_status(**status)

    assert await made(fake)() == grant


@pytest.mark.parametrize(("life", "fresh"), [(100, 80), (3600, 3480)])
async def test_the_plugin_is_run_again_before_its_token_expires(
    tmp_path: Path, life: float, fresh: float
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc", expirationTimestamp=in_seconds(life))

    grant = await made(fake)()

    assert grant.valid_for == pytest.approx(life, abs=5)
    assert grant.fresh_for == pytest.approx(fresh, abs=5)


# -- its input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [False, True])
async def test_the_plugin_gets_the_cluster_information_that_it_requests(
    tmp_path: Path, wanted: bool
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc")
    cluster = {"server": "https://10.0.0.1", "config": {"audience": "x"}}

    await made(fake, cluster, **({"provideClusterInfo": True} if wanted else {}))()

    spec = {"interactive": False, **({"cluster": cluster} if wanted else {})}
    assert fake.last_exec_info == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}


async def test_the_plugin_gets_its_arguments_and_its_variables(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    answer = json.dumps(
        {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "$1-$WORD"}}
    )
    fake.write_script(f"cat <<END\n{answer}\nEND")
    plugin = made(fake, args=["one"], env=[{"name": "WORD", "value": "two"}])

    assert (await plugin()).header == "Bearer one-two"


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

    assert await failure(ExecPlugin(parse_exec_section(section, {}), "here")) == (
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

    assert await failure(made(fake, command="plugin")) == (
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

    assert await made(fakes[0], command="plugin")() == TokenGrant("Bearer first")
    fakes[0].path.chmod(0o644)  # as in a shell, a file that is no program is passed over
    assert await made(fakes[0], command="plugin")() == TokenGrant("Bearer second")


async def test_the_error_for_a_plugin_without_a_free_descriptor_names_the_limit(
    tmp_path: Path,
) -> None:
    fake = FakePlugin(tmp_path)
    plugin = made(fake, installHint="Install it.")
    with no_free_descriptor():
        message = await failure(plugin)

    assert message == (
        f"here: the exec plugin '{fake.path}' can't be run: Too many open files: this program or "
        "the machine has reached a limit (`ulimit -a`); the plugin is run again in 10 s or later"
    )


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

    assert await made(fake)() == TokenGrant("Bearer abc")

    # asyncio can't wait for a program that ends as soon as it has begun.
    fake.write_script("sleep 0.2; echo no lease >&2; exit 1")
    assert await failure(made(fake)) == (
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

    assert await failure(made(fake)) == f"here: the exec plugin '{fake.path}' failed {fault}"


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

    text = await failure(
        made(fake, args=["--client-secret", "swordfish", "--k=tr0ub4dor"], env=variables)
    )

    assert "[credential]" in text
    assert not any(word in text for word in ("hunter2", "swordfish", "tr0ub4dor", CANARY))


@pytest.mark.parametrize(
    ("script", "seconds", "fault"),
    [
        ("kill -9 $$", 60, f"failed by signal 9; {CHECK}"),
        ("sleep 60", 0.1, "did not end in 0.1 s, and was killed"),
    ],
)
async def test_the_error_for_a_killed_plugin_names_the_signal_or_the_timeout(
    tmp_path: Path, script: str, seconds: float, fault: str
) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script(script)
    plugin = ExecPlugin(parse_exec_section(fake.user()["exec"], {}), "here", timeout=seconds)

    assert (await failure(plugin)).endswith(fault)


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

    message = await failure(made(fake))

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

    assert text in await failure(made(fake))


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
        message = await failure(made(fake))
    assert message == f"here: the exec plugin '{fake.path}' {fault}; {CHECK}"


async def test_a_run_that_failed_is_not_repeated_at_once(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script("exit 1")
    plugin = made(fake)

    assert await failure(plugin) == await failure(plugin)
    assert fake.runs == 1


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
def test_the_error_for_an_invalid_exec_section_names_the_fault(
    section: Mapping[str, Any], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text) as caught:
        parse_exec_section(section, {})
    assert CANARY not in error_chain_text(caught.value)


@pytest.mark.parametrize("mode", ["Never", "IfAvailable", None])
def test_a_plugin_that_can_do_without_a_terminal_gets_none(mode: str | None) -> None:
    section = {"apiVersion": V1, "command": "x", "interactiveMode": mode}

    environment = parse_exec_section(section, {}).build_environment()

    assert json.loads(environment["KUBERNETES_EXEC_INFO"])["spec"]["interactive"] is False


@pytest.mark.parametrize("entry", [{}, {"value": None}], ids=["none", "null"])
def test_a_variable_without_value_is_empty(entry: Mapping[str, Any]) -> None:
    section = {"apiVersion": V1, "command": "x", "env": [{"name": "FOO", **entry}]}

    assert parse_exec_section(section, {}).build_environment()["FOO"] == ""


def test_no_repr_shows_a_secret() -> None:
    section = {
        "apiVersion": V1,
        "command": "x",
        "args": ["--token", CANARY],
        "env": [{"name": "TOKEN", "value": CANARY}],
    }

    assert CANARY not in repr(ExecPlugin(parse_exec_section(section, {}), "here"))


@pytest.mark.parametrize("behind", [f"?token={CANARY}", f" --token={CANARY}"])
async def test_arguments_in_the_command_are_not_shown(tmp_path: Path, behind: str) -> None:
    section = {"apiVersion": V1, "command": f"{tmp_path}/nothing{behind}"}

    text = await failure(ExecPlugin(parse_exec_section(section, NOTHING), "here"))

    assert text.startswith(f"here: the exec plugin '{tmp_path}/nothing' can't be run: No such file")
    with pytest.raises(ConfigurationError) as caught:
        parse_exec_section({**section, "apiVersion": "v0"}, NOTHING)
    assert CANARY not in error_chain_text(caught.value)
