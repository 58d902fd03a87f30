"""Tests of the query parameters of writes: all invalid ones are named in one answer."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from aioinformer.testing import ApiServer

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
BODY: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a"},
    "data": {"a": "b"},
}


@pytest.mark.parametrize(
    ("query", "headers", "messages"),
    [
        (
            {"fieldManager": "é" * 65},
            MERGE,
            ["fieldManager: Too long: may not be more than 128 bytes"],
        ),
        (
            {"fieldManager": "a\u0007\u0085"},
            APPLY,
            [
                f'fieldManager: Invalid value: "a\\a\\u0085": invalid character {place}'
                for place in ("U+0007 (at position 1)", "U+0085 (at position 2)")
            ],
        ),
        (
            {"force": "1", "dryRun": "x"},
            MERGE,
            [
                "force: Forbidden: may not be specified for non-apply patch",
                'dryRun: Unsupported value: ["x"]: supported values: "All"',
            ],
        ),
        ({}, APPLY, ["fieldManager: Required value: is required for apply patch"]),
    ],
)
async def test_all_invalid_parameters_are_named(
    server: ApiServer,
    http: aiohttp.ClientSession,
    query: dict[str, str],
    headers: dict[str, str],
    messages: list[str],
) -> None:
    server.cluster.create("configmaps", BODY)
    path = f"{CONFIGMAPS}/a"
    async with http.patch(path, params=query, json=BODY, headers=headers) as response:
        status = await response.json()
    assert (response.status, status["reason"]) == (422, "Invalid")
    causes = status["details"]["causes"]
    assert [f"{cause['field']}: {cause['message']}" for cause in causes] == messages


async def test_a_field_manager_of_128_bytes_is_accepted(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    query = {"fieldManager": "m" * 128}
    async with http.post(CONFIGMAPS, params=query, json=BODY) as response:
        assert response.status == 201
    [entry] = server.cluster.get("configmaps", "a")["metadata"]["managedFields"]
    assert entry["manager"] == "m" * 128
