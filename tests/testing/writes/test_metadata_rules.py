"""Rules for metadata that a server checks."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import Invalid
from aioinformer.testing import Cluster


def reference(name: str, *, controller: bool) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name,
        "uid": f"uid-{name}",
        "controller": controller,
    }


def test_an_object_has_one_controller_at_most() -> None:
    cluster = Cluster()
    owners = [reference("a", controller=True), reference("b", controller=False)]
    cluster.create("pods", {"metadata": {"name": "one", "ownerReferences": owners}})
    owners = [reference("a", controller=True), reference("b", controller=True)]
    with pytest.raises(Invalid, match="in references for ConfigMap/a and ConfigMap/b"):
        cluster.create("pods", {"metadata": {"name": "two", "ownerReferences": owners}})
