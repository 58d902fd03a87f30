"""The examples of docstrings run, and every public name has an example that runs.

An example finds these names: everything of ``aioinformer``, ``asyncio``, ``cluster`` with the
objects of ``fill_cluster``, ``client`` of a server of that cluster, ``informers`` (a running
factory of the client in the namespace ``web``), ``pods`` and ``deployments`` (informers of the
factory, synced), and ``folder``, an empty folder. An example with ``ctx`` runs inside of a run of
a controller.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

import aioinformer
from aioinformer import (
    Client,
    Controller,
    ObjectKey,
    ReconcileContext,
    SharedInformerFactory,
)
from aioinformer.testing import ApiServer, Cluster
from tests.public_examples import (
    DocstringExample,
    docstring_examples,
    find_example,
    identifiers,
    public_names,
)

pytest_plugins = ["pytester"]

SCOPE = "asyncio_default_fixture_loop_scope=function"
"""An option without which pytest-asyncio warns."""

PUBLIC = {each: getattr(aioinformer, each) for each in vars(aioinformer)["__all__"]}
"""Loaded before a run of ``pytester``, which unloads the modules that it has loaded: their classes
would exist twice."""

SERVED = frozenset({"client", "informers", "pods", "deployments", "ctx"})
"""Names for which an example needs a server."""


def fill_cluster(cluster: Cluster) -> None:
    """Create two pods, a deployment that is rolled out, and a job that is complete."""
    ready = {"type": "Ready", "status": "True"}
    for number in range(2):
        body = {
            "metadata": {"name": f"web-{number}", "labels": {"app": "shop"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]},
            "status": {"phase": "Running", "conditions": [ready]},
        }
        cluster.create("pods", body, namespace="web")
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": list[Any]()}}
    spec: dict[str, Any] = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": template,
    }
    status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    body = {"metadata": {"name": "shop"}, "spec": spec, "status": status}
    cluster.create("deployments", body, namespace="web")
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    body = {"metadata": {"name": "migrate"}, "status": complete}
    cluster.create("jobs", body, namespace="web")


@asynccontextmanager
async def names_for(code: str, folder: Path) -> AsyncGenerator[dict[str, Any]]:
    """Return the names that an example finds."""
    names: dict[str, Any] = {"__name__": "example", "asyncio": asyncio, "folder": folder}
    names["__builtins__"] = builtins  # read by code that is run without a module
    names |= PUBLIC
    names["cluster"] = cluster = Cluster()
    fill_cluster(cluster)
    if not identifiers(code) & SERVED:
        yield names
        return
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, namespace="web") as informers,
    ):
        names |= {"client": client, "informers": informers}
        for informer in ("pods", "deployments"):
            if informer in identifiers(code):
                names[informer] = informers.informer(informer)
        await informers.wait_synced(timeout=30)
        yield names


def compile_example(example: DocstringExample) -> CodeType:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(example.code, str(example), "exec", flags=flags, dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


TESTS = [each for each in docstring_examples() if "def test_" in each.code]
PROGRAMS = [each for each in docstring_examples() if "def test_" not in each.code]


@pytest.mark.parametrize("example", TESTS, ids=str)
def test_an_example_that_has_tests_passes(
    example: DocstringExample, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest('pytest_plugins = ["aioinformer.testing.plugin"]')
    pytester.makepyfile(example.code)
    run = pytester.runpytest_inprocess("-o", "asyncio_mode=auto", "-o", SCOPE)
    run.assert_outcomes(passed=example.code.count("def test_"))


@pytest.mark.parametrize("example", PROGRAMS, ids=str)
async def test_an_example_of_a_docstring_runs(example: DocstringExample, tmp_path: Path) -> None:
    code = compile_example(example)
    async with names_for(example.code, tmp_path) as names:
        async with asyncio.timeout(30):
            if "ctx" in identifiers(example.code):
                await run_in_reconcile(code, names)
            elif "simulate" in identifiers(example.code):  # which starts an event loop
                await asyncio.to_thread(FunctionType(code, names))
            else:
                await run_code(code, names)


async def run_code(code: CodeType, names: dict[str, Any]) -> None:
    result = FunctionType(code, names)()
    if inspect.isawaitable(result):
        await result


async def run_in_reconcile(code: CodeType, names: dict[str, Any]) -> None:
    """Run an example that uses the context of a run of a controller."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        try:
            await run_code(code, names | {"key": key, "ctx": ctx})
        finally:
            ended.set_result(None)

    deployments = names["informers"].informer("deployments")
    async with Controller(deployments, reconcile) as controller:
        await ended
    assert controller.health.failed_runs == 0, controller.health


def unknown_attributes(code: str) -> list[str]:
    """Return the attributes that the functions of an example read of their parameters, and that the
    annotated class of ``aioinformer`` doesn't have. An example may define a function for another
    caller, so that running the example doesn't run the function.
    """
    found: list[str] = []
    for function in ast.walk(ast.parse(code)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        kinds = {
            each.arg: getattr(aioinformer, ast.unparse(each.annotation), None)
            for each in (*function.args.args, *function.args.kwonlyargs)
            if each.annotation is not None
        }
        found += [
            ast.unparse(read)
            for read in ast.walk(function)
            if isinstance(read, ast.Attribute)
            and isinstance(read.value, ast.Name)
            and isinstance(kind := kinds.get(read.value.id), type)
            and not hasattr(kind, read.attr)
        ]
    return found


@pytest.mark.parametrize("example", PROGRAMS, ids=str)
def test_a_function_of_an_example_reads_only_attributes_that_exist(
    example: DocstringExample,
) -> None:
    assert unknown_attributes(example.code) == []


def test_an_attribute_that_does_not_exist_would_be_found() -> None:
    code = "def row(obj: KubeObject) -> str:\n    return obj.name + obj.phase\n"
    assert unknown_attributes(code) == ["obj.phase"]


def test_every_public_name_has_an_example_that_runs() -> None:
    missing = [str(each) for each in public_names() if find_example(each.name) is None]
    assert missing == [], "write an Example:: block into the docstring of the name or of its page"


def test_a_name_without_an_example_would_be_found() -> None:
    assert find_example("SharedInformerFactory") is not None
    assert find_example("NoExampleHasThisName") is None
