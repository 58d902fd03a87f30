"""``aioinformer watch`` and ``health`` against the real API server."""

from __future__ import annotations

import copy
import json
import signal
from pathlib import Path

import pytest

from tests.apiserver.server.server_process import (
    WIDGET_CRD,
    AdminClient,
    ApiServerProcess,
    Json,
    Resource,
    install_crd,
)
from tests.cli.processes import environment, started_cli

pytestmark = pytest.mark.apiserver


@pytest.mark.parametrize("name", ["widgets", "wd", "widget first", "wd/first"])
async def test_watch_prints_each_change_of_another_client(
    name: str, api_server: ApiServerProcess, admin: AdminClient, tmp_path: Path
) -> None:
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "first"},
        "spec": {"colour": "red"},
    }
    await admin.create(widget)
    argv = ("watch", *name.split(), "--kubeconfig", str(api_server.kubeconfig))
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        header, first = await run.read_line(), await run.read_line()
        await admin.merge_patch("first", {"spec": {"colour": "blue"}})
        second = await run.read_line()
        await admin.delete("first")
        third = await run.read_line()
        run.send_signal(signal.SIGINT)
        code, out, err = await run.wait()

    assert header.split()[:2] == ["EVENT", "NAME"]
    assert first.split()[:2] == ["ADDED", "first"]
    assert second.split()[:2] == ["MODIFIED", "first"]
    assert third.split()[:2] == ["DELETED", "first"]
    assert (code, out, err) == (130, "", "")


GADGETS = Resource("example.com", "v1", "gadgets")


def gadget_crd() -> Json:
    """Return a definition with printer columns."""
    crd = copy.deepcopy(WIDGET_CRD)
    crd["metadata"]["name"] = "gadgets.example.com"
    crd["spec"]["names"] = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"}
    (version,) = crd["spec"]["versions"]
    version["additionalPrinterColumns"] = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    return crd


def gadget(name: str, **spec: object) -> Json:
    metadata = {"name": name}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("form", "headings", "cells"),
    [
        ("table", ["NAME", "SIZE", "AGE"], ["first", "3"]),
        ("wide", ["NAME", "SIZE", "COLOUR", "AGE"], ["first", "3", "red"]),
    ],
)
async def test_the_columns_are_those_of_the_definition(
    form: str, headings: list[str], cells: list[str], api_server: ApiServerProcess, tmp_path: Path
) -> None:
    await install_crd(api_server, gadget_crd())
    argv = ("watch", "gadgets", "-o", form, "--kubeconfig", str(api_server.kubeconfig))
    async with AdminClient(api_server, GADGETS) as admin:
        await admin.create(gadget("first", size=3, colour="red"))
        async with started_cli(*argv, env=environment(tmp_path)) as run:
            header, first = await run.read_line(), await run.read_line()
            await admin.merge_patch("first", {"spec": {"size": None}})
            second = await run.read_line()
            await admin.delete("first")
            third = await run.read_line()

    assert header.split() == ["EVENT", *headings]
    assert first.split()[:-1] == ["ADDED", *cells]
    assert second.split()[:3] == ["MODIFIED", "first", "-"]
    assert third.split()[:2] == ["DELETED", "first"]


async def test_health_reports_the_capabilities_of_the_server(
    api_server: ApiServerProcess, admin: AdminClient, tmp_path: Path
) -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "first"}}
    await admin.create(widget)
    argv = ("health", "widgets", "-o", "json", "--kubeconfig", str(api_server.kubeconfig))
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        code, out, err = await run.wait()
    document = json.loads(out)

    assert (code, err, document["ok"]) == (0, "", True)
    (finding,) = document["resources"]
    assert (finding["resource"], finding["scope"]) == ("widgets.example.com", "default")
    assert (finding["lists"], finding["watches"], finding["objects"]) == (True, True, 1)
    assert finding["strategy"] == "watchlist"
