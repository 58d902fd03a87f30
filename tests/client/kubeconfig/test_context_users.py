"""The users of a kubeconfig, and the client and trusted certificates."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import ssl
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.client.conftest import Certificates
from tests.client.kubeconfigs import (
    CANARY,
    connect,
    encode_base64,
    load_error,
    load_header,
    load_server,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import Handler, http_server

# -- who asks ----------------------------------------------------------------------------------


async def test_a_token_file_is_read_from_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")

    assert await load_header(tmp_path, {"tokenFile": "token"}) == "Bearer abc"


async def test_a_token_is_used_while_its_token_file_is_missing(tmp_path: Path) -> None:
    user = {"token": "abc", "tokenFile": "token"}
    assert await load_header(tmp_path, user) == "Bearer abc"

    (tmp_path / "token").write_text("def\n")
    assert await load_header(tmp_path, user) == "Bearer def"


@pytest.mark.parametrize("password", [{}, {"password": ""}], ids=["none", "empty"])
async def test_a_user_without_password_is_basic_authorization(
    tmp_path: Path, password: Mapping[str, str]
) -> None:
    user = {"username": "me", **password, "exec": {"command": "no-such-tool"}}
    assert await load_header(tmp_path, user) == "Basic bWU6"


async def test_a_password_without_user_is_no_authorization_and_runs_the_plugin(
    tmp_path: Path,
) -> None:
    assert await load_header(tmp_path, {"password": "pw"}) == ""
    assert await load_header(
        tmp_path, {"password": "pw", **plugin(tmp_path, {"token": "abc"})}
    ) == ("Bearer abc")


async def test_a_token_of_two_lines_is_rejected(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"token": f"{CANARY}\nX-Evil: 1"}))

    message = await load_error(path)

    assert message == (
        f"{path}: context 'main': the token contains a space, newline or control character"
    )


def plugin(folder: Path, status: Mapping[str, Any], command: str = "") -> dict[str, Any]:
    """Return a user whose exec plugin prints ``status``."""
    version = "client.authentication.k8s.io/v1"
    output = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": dict(status)})
    program = folder / "plugin"
    program.write_text(f"#!{sys.executable}\nprint({output!r})\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": version, "command": command or str(program)}}


@pytest.mark.parametrize("command", ["", "./plugin"], ids=["absolute", "beside the kubeconfig"])
async def test_an_exec_plugin_yields_a_token(tmp_path: Path, command: str) -> None:
    assert await load_header(tmp_path, plugin(tmp_path, {"token": "abc"}, command)) == "Bearer abc"


async def test_the_error_for_a_failed_exec_plugin_names_it(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}}
    path = write_kubeconfig(tmp_path, make_kubeconfig(user=user))

    assert await load_error(path) == (
        f"{path}: context 'main': the exec plugin 'false' failed with code 1; run it in a "
        "terminal to see what is wrong: perhaps a login has expired"
    )


@pytest.mark.parametrize("form", ["", "-data"], ids=["files", "data"])
async def test_a_user_with_a_client_certificate_runs_no_plugin(
    tmp_path: Path, certificates: Certificates, form: str
) -> None:
    (tmp_path / "me.crt").write_bytes(chain_of(certificates.user))
    (tmp_path / "me.key").write_bytes(key_of(certificates.user))
    pair = {
        "": {"client-certificate": "me.crt", "client-key": "me.key"},
        "-data": {
            "client-certificate-data": encode_base64(chain_of(certificates.user)),
            "client-key-data": encode_base64(key_of(certificates.user)),
        },
    }[form]
    section = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-tool"}
    async with http_server(whoami, tls=asking_for_certificates(certificates)) as server:
        authority = str(certificates.write_authority(tmp_path))
        content = make_kubeconfig(
            cluster={"server": server, "certificate-authority": authority},
            user={**pair, "exec": section},
        )

        assert await ask(write_kubeconfig(tmp_path, content))


async def test_an_exec_plugin_that_is_not_installed_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-tool"}}

    assert "no-such-tool" in await load_error(
        write_kubeconfig(tmp_path, make_kubeconfig(user=user))
    )


def identity(expires: dt.datetime, issuer: str = "") -> dict[str, Any]:
    """Return a user with an id-token of OpenID Connect."""
    claims = encode_base64(json.dumps({"exp": int(expires.timestamp())}).encode()).rstrip("=")
    config = {
        "client-id": "me",
        "client-secret": CANARY,
        "id-token": f"head.{claims}.signature",
        "idp-issuer-url": issuer,
        "refresh-token": CANARY,
    }
    return {"auth-provider": {"name": "oidc", "config": config}}


async def test_an_id_token_that_is_valid_is_used(tmp_path: Path) -> None:
    tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)

    assert (await load_header(tmp_path, identity(tomorrow))).startswith("Bearer head.")


async def test_an_id_token_that_has_expired_is_not_renewed_over_unchecked_tls(
    tmp_path: Path,
) -> None:
    requests: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(request.path)
        return web.Response()

    async with http_server(answer) as issuer:
        yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        path = write_kubeconfig(tmp_path, make_kubeconfig(user=identity(yesterday, issuer)))
        message = await load_error(path)

    assert f"its id-token expired at {yesterday:%Y-%m-%d %H:%M:%S} UTC" in message
    assert "run kubectl once" in message
    assert CANARY not in message
    assert requests == []


# -- TLS ---------------------------------------------------------------------------------------


async def whoami(request: web.Request) -> web.Response:
    """Return the names in the client's certificate."""
    shown: dict[str, Any] = request.get_extra_info("peercert") or {}
    return web.Response(text=",".join(name for _, name in shown.get("subjectAltName", ())))


async def ask(path: Path | None = None) -> bytes:
    async with connect(path) as client:
        return await client.get_raw("/")


def asking_for_certificates(certificates: Certificates) -> ssl.SSLContext:
    context = certificates.server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificates.authority_pem.decode())
    return context


def key_of(leaf: trustme.LeafCert) -> bytes:
    return leaf.private_key_pem.bytes()


def chain_of(leaf: trustme.LeafCert) -> bytes:
    return b"".join(blob.bytes() for blob in leaf.cert_chain_pems)


def temporary_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("aioinformer-*"))


async def test_certificates_inside_the_file_are_used_and_not_left_on_disk(
    tmp_path: Path, certificates: Certificates
) -> None:
    before = temporary_folders()
    async with http_server(whoami, tls=asking_for_certificates(certificates)) as server:
        cluster = {
            "server": server,
            "certificate-authority-data": encode_base64(certificates.authority_pem),
        }
        user = {
            "client-certificate-data": encode_base64(chain_of(certificates.user)),
            "client-key-data": encode_base64(key_of(certificates.user)),
        }
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster, user=user))

        assert await ask(path) == b"user@example.com"
    assert temporary_folders() <= before


async def test_paths_of_certificates_are_meant_from_the_file_that_names_them(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster and the user are in different folders."""
    clusters, users = tmp_path / "clusters", tmp_path / "users"
    clusters.mkdir()
    users.mkdir()
    certificates.write_authority(clusters)
    (users / "me.crt").write_bytes(chain_of(certificates.user))
    (users / "me.key").write_bytes(key_of(certificates.user))
    async with http_server(whoami, tls=asking_for_certificates(certificates)) as server:
        content = make_kubeconfig(
            cluster={"server": server, "certificate-authority": "ca.crt"},
            user={"client-certificate": "me.crt", "client-key": "me.key"},
        )
        user = {"users": content.pop("users")}
        first, second = write_kubeconfig(clusters, content), write_kubeconfig(users, user)
        monkeypatch.setenv("KUBECONFIG", f"{first}{os.pathsep}{second}")

        assert await ask()


async def test_an_exec_plugin_may_yield_a_certificate_more_than_once(
    tmp_path: Path, certificates: Certificates
) -> None:
    status = {
        "clientCertificateData": chain_of(certificates.user).decode(),
        "clientKeyData": key_of(certificates.user).decode(),
    }
    async with http_server(whoami, tls=asking_for_certificates(certificates)) as server:
        authority = str(certificates.write_authority(tmp_path))
        cluster = {"server": server, "certificate-authority": authority}
        content = make_kubeconfig(cluster=cluster, user=plugin(tmp_path, status))
        path = write_kubeconfig(tmp_path, content)

        assert await ask(path) == b"user@example.com"
        assert await ask(path) == b"user@example.com"


async def test_insecure_skip_tls_verify_trusts_every_certificate(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with http_server(whoami, tls=certificates.server_context()) as server:
        cluster = {"server": server, "insecure-skip-tls-verify": True}

        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))
        assert await ask(path) == b""


async def test_a_tls_server_name_is_what_the_certificate_is_checked_for(
    tmp_path: Path, certificates: Certificates
) -> None:
    other = certificates.authority.issue_cert("kubernetes.example")
    async with http_server(whoami, tls=certificates.server_context(other)) as server:
        cluster = {
            "server": server,
            "tls-server-name": "kubernetes.example",
            "certificate-authority-data": encode_base64(certificates.authority_pem),
        }

        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))
        assert await ask(path) == b""


async def test_data_may_be_wrapped_over_several_lines(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Go's decoder of base64 ignores newlines, and so does kubectl."""
    async with http_server(whoami, tls=certificates.server_context()) as server:
        wrapped = base64.encodebytes(certificates.authority_pem).decode()
        assert wrapped.count("\n") > 5
        cluster = {
            "server": server,
            "certificate-authority-data": wrapped.replace("\n", "\r\n", 2),
        }
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))

        assert await ask(path) == b""


async def test_an_encrypted_key_is_rejected_without_a_prompt_for_its_password(
    tmp_path: Path, certificates: Certificates
) -> None:
    key = load_pem_private_key(key_of(certificates.user), password=None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    )
    user = {
        "client-certificate-data": encode_base64(chain_of(certificates.user)),
        "client-key-data": encode_base64(encrypted),
    }
    cluster = {
        "server": "https://10.0.0.1",
        "certificate-authority-data": encode_base64(certificates.authority_pem),
    }
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster, user=user))

    assert "the client key is encrypted" in await load_error(path)


async def test_a_proxy_carries_plain_requests_with_its_own_credentials(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.url} {request.headers['Proxy-Authorization']}")

    async with http_server(answer) as proxy:
        cluster = {"proxy-url": proxy.replace("//", f"//me:{CANARY}@")}
        seen = await ask(write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster)))

    assert seen.decode() == f"http://10.0.0.1/ Basic {encode_base64(f'me:{CANARY}'.encode())}"


async def test_the_proxy_of_a_kubeconfig_precedes_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def proxy(cluster: Mapping[str, str]) -> str:
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))
        return (await ask(path)).decode()

    async with (
        http_server(named("environment")) as environment,
        http_server(named("own")) as own,
        http_server(named("none")) as server,
    ):
        monkeypatch.setenv("HTTP_PROXY", environment)
        assert await proxy({}) == "environment"
        assert await proxy({"proxy-url": own}) == "own"
        assert await proxy({"server": server}) == "none"


def named(name: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=name)

    return answer


async def test_the_error_for_a_proxy_that_can_not_be_used_names_the_context(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"proxy-url": "socks4://a:1080"}))

    assert await load_error(path) == (
        f"{path}: context 'main': a proxy is a URL such as http://10.0.0.1:3128 or "
        "socks5://10.0.0.1:1080"
    )


async def test_a_query_of_the_server_is_ignored_as_by_kubectl(tmp_path: Path) -> None:
    cluster = {"server": f"http://10.0.0.1/k8s?token={CANARY}"}
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))

    assert await load_server(path) == "http://10.0.0.1/k8s"
