"""The credentials of a pod's service account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme

from aioinformer._client.kubeconfig.in_cluster import InClusterConfig, MountedAuthority
from aioinformer.errors import ConfigurationError
from tests.client.kubeconfigs import error_chain_text

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
TRIED = "nothing is at ~/.kube/config"


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """Return the mounted files of a service account."""
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_bytes(trustme.CA().cert_pem.bytes())
    (tmp_path / "namespace").write_text("web\n")
    return tmp_path


def error_of(mount: Path, environment: Mapping[str, str]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        InClusterConfig(mount, environment).read_credentials(TRIED)
    return error_chain_text(caught.value)


def test_the_endpoint_the_namespace_and_the_origin_are_those_of_the_pod(mount: Path) -> None:
    found = InClusterConfig(mount, POD).read_credentials(TRIED)

    assert str(found.server).rstrip("/") == "https://10.0.0.1"
    assert (found.namespace, found.origin) == ("web", str(mount))


def test_the_namespace_of_the_downward_api_precedes_the_mounted_one(mount: Path) -> None:
    given = InClusterConfig(mount, POD | {"POD_NAMESPACE": "shop"}).read_credentials(TRIED)
    (mount / "namespace").unlink()
    missing = InClusterConfig(mount, POD).read_credentials(TRIED)

    assert (given.namespace, missing.namespace) == ("shop", "")


def test_the_error_outside_of_a_pod_says_where_to_put_a_kubeconfig(tmp_path: Path) -> None:
    text = error_of(tmp_path, {})

    assert text.startswith(f"no cluster is configured: {TRIED}, and this is not a pod; put your")
    assert "KUBERNETES_SERVICE" not in text


@pytest.mark.parametrize("name", POD)
def test_the_error_of_a_pod_without_its_endpoint_says_what_is_missing(
    mount: Path, name: str
) -> None:
    assert "Service host/port is not set; is the service account mounted?" in error_of(
        mount, POD | {name: ""}
    )


def test_the_error_of_an_unusable_token_says_what_is_wrong_and_not_what_the_file_holds(
    mount: Path,
) -> None:
    token = mount / "token"
    token.write_bytes(b"hunter2 \xff")
    damaged = error_of(mount, POD)
    token.write_text(" \n")
    empty = error_of(mount, POD)
    token.unlink()
    missing = error_of(mount, POD)

    assert "the token is not text" in damaged
    assert "hunter2" not in damaged
    assert "Service token file is empty" in empty
    assert "Service token file does not exist" in missing


def test_the_environment_which_may_hold_secrets_is_not_shown(mount: Path) -> None:
    assert "hunter2" not in repr(InClusterConfig(mount, POD | {"PASSWORD": "hunter2"}))


def test_a_missing_authority_means_those_of_the_system_and_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = MountedAuthority(tmp_path / "ca.crt")

    first, second = authority.read_material(), authority.read_material()

    assert first == second
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path / 'ca.crt'} does not exist: the server's certificate is")
