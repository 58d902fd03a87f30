"""Tests of the JSON paths of printer columns."""

from __future__ import annotations

import pytest

from aioinformer.testing.wire.json_paths import JsonPath

BODY = {
    "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
    "spec": {"ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.ports[0].port", [80]),
        (".spec.ports[-1].name", ["dns"]),
        (".spec.ports[9].name", []),
        (".spec.ports[*].port", [80, 53]),
        ('.spec.ports[?(@.name=="dns")].port', [53]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        (".status.conditions[?(@.type=='Done')].status", []),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (".metadata.labels['app.kubernetes.io/name']", ["web"]),
        (".spec.nope.deeper", []),
        (".spec.ports.name", []),
    ],
)
def test_a_path_finds_its_values(path: str, values: list[object]) -> None:
    assert JsonPath(path).find(BODY) == values


@pytest.mark.parametrize("path", ["spec", ".a[", ".a[?(@.b>1)]"])
def test_a_path_that_no_column_can_have_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON path"):
        JsonPath(path)
