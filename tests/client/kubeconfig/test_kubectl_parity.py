"""Each kubeconfig file does what it does for kubectl, with the differences that the table names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aioinformer._client.kubeconfig.kubeconfig import Kubeconfig
from aioinformer.errors import ConfigurationError
from tests.client.kubeconfig.kubectl_cases import ASKS, CASES, POD, REFUSED, Case


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files of a pod's service account."""
    folder = tmp_path_factory.mktemp("mount")
    (folder / "token").write_text("pod")
    return folder


async def read(files: str, mount: Path) -> str:
    """Return what a client would send, or how the file is refused."""
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    try:
        found = await Kubeconfig(environment={"KUBECONFIG": files, **pod}, mount=mount).load()
    except ConfigurationError as error:
        names_a_file = any(path in str(error) for path in files.split(os.pathsep))
        return REFUSED if names_a_file else str(error)
    header = await found.authorization.header()
    if header == "Bearer pod":
        return POD
    impersonated = sorted(f"{name}={value}" for name, value in found.headers)
    sent = " ".join([found.server.path, *filter(None, [header]), *impersonated])
    return ASKS if sent == "/one" else sent


@pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
async def test_a_kubeconfig_does_what_it_does_for_kubectl(
    tmp_path: Path, mount: Path, case: Case
) -> None:
    # Without TLS, no certificates of the system have to be read.
    files = case.write(tmp_path, scheme="http")

    assert await read(files, mount) == (case.ours or case.kubectl)
