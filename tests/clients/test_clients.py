"""Other clients of Kubernetes on the embedded server, and on a real API server as the judge."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import custom_objects, go_clients, object_clients
from tests.clients.exercises import CLIENTS, EXERCISES, Exercise, Target, format_table
from tests.markdown_pages import MarkdownPage

GUIDE = MarkdownPage(Path(__file__).parents[2] / "examples" / "guides" / "testing.md")

MODULES = (go_clients, custom_objects, object_clients)
"""The modules that fill ``EXERCISES``."""

CASES = [
    (server, each)
    for each in EXERCISES
    for server in ("embedded", "real")
    if not (each.built_in and server == "real")
]


@pytest.fixture
def collected_garbage() -> Iterator[None]:
    """Collect the sockets that a client left open while its test only prints their warnings."""
    yield
    # pytest collects again at the end of the run, where each warning is an error.
    gc.collect()


@pytest.mark.clients
@pytest.mark.usefixtures("collected_garbage")
@pytest.mark.filterwarnings("default")  # of the clients' own code
@pytest.mark.parametrize(
    ("server_kubeconfig", "performed"),
    CASES,
    indirect=["server_kubeconfig"],
    ids=[f"{server}-{each}" for server, each in CASES],
)
def test_a_client_performs_its_exercise(
    server_kubeconfig: Path, performed: Exercise, request: pytest.FixtureRequest
) -> None:
    is_go = performed.run.__module__ == go_clients.__name__
    binary: Path | None = request.getfixturevalue("go_binary") if is_go else None
    performed.run(Target(server_kubeconfig, performed.namespace, binary))


def test_the_table_of_the_guide_is_the_list_of_the_exercises() -> None:
    assert format_table() in GUIDE.text


def test_the_clients_with_exercises_are_those_of_the_table() -> None:
    assert {each.client for each in EXERCISES} == set(CLIENTS)


def test_every_exercise_has_its_own_namespace() -> None:
    names = [each.namespace for each in EXERCISES]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for name in names)
