"""Objects from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aioinformer.errors import UsageError
from aioinformer.testing import Cluster
from aioinformer.testing.manifests import load_manifests
from tests.client.kubeconfig.kubectl_cases import BOMB

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: web, annotations: {at: 2026-01-01T00:00:00Z}}
status: {phase: Running}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {8080: "http", on: "yes"}}
---
"""

WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def names(cluster: Cluster, resource: str) -> list[str]:
    items = json.loads(cluster.list(resource))["items"]
    return [item["metadata"]["name"] for item in items]


def test_every_document_is_an_object_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(PODS)
    cluster = Cluster()

    assert load_manifests(cluster, tmp_path / "pods.yaml") == 2

    pod = cluster.get("pods", "web-0", namespace="web")
    assert pod["status"] == {"phase": "Running"}
    assert pod["metadata"]["annotations"] == {"at": "2026-01-01T00:00:00Z"}, "a time stays text"
    assert cluster.get("configmaps", "settings")["data"] == {"8080": "http", "true": "yes"}


def test_values_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    shared = "metadata: {name: s}\nspec: {a: y, b: 010, c: 12:30, d: &d {e: =}, f: *d}\n"
    (tmp_path / "crd.yaml").write_text(WIDGETS)
    (tmp_path / "w.yaml").write_text(f"apiVersion: example.com/v1\nkind: Widget\n{shared}")
    cluster = Cluster()

    load_manifests(cluster, tmp_path)

    (widgets,) = [each for each in cluster.resources if each.plural == "widgets"]
    spec = json.loads(cluster.list(widgets))["items"][0]["spec"]
    assert spec == {"a": True, "b": 8, "c": "12:30", "d": {"e": "="}, "f": {"e": "="}}


def test_a_folder_is_read_with_definitions_first(tmp_path: Path) -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    (tmp_path / "a.json").write_text(json.dumps(widget))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "crd.yml").write_text(WIDGETS)
    (tmp_path / "README.md").write_text("not a manifest")
    cluster = Cluster()

    assert load_manifests(cluster, tmp_path) == 2

    (widgets,) = [each for each in cluster.resources if each.plural == "widgets"]
    assert json.loads(cluster.list(widgets))["items"][0]["metadata"]["name"] == "w"
    assert names(cluster, "customresourcedefinitions") == ["widgets.example.com"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: [", "bad.yaml: line 2: did not find expected node content"),
        (BOMB, "bad.yaml: line 4: document contains excessive aliasing"),
        ("just text", "bad.yaml: a manifest is an object with apiVersion and kind"),
        (
            "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}",
            "bad.yaml: Widget w: no resource of the cluster has apiVersion 'example.com/v1' and "
            "kind 'Widget'; load its CustomResourceDefinition too",
        ),
        ("{apiVersion: v1, kind: Pod}", "bad.yaml: Pod (no name): "),
        (
            "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, "
            "metadata: {name: w}}",
            "bad.yaml: CustomResourceDefinition w: ",
        ),
    ],
)
def test_an_error_names_the_file_and_the_object(
    content: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text(content)
    with pytest.raises(UsageError) as raised:
        load_manifests(Cluster(), tmp_path / "bad.yaml")
    assert complaint in str(raised.value)


def test_nothing_is_created_if_one_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(PODS)
    cluster = Cluster()
    with pytest.raises(UsageError, match=r"no\.yaml: No such file or directory"):
        load_manifests(cluster, tmp_path / "pods.yaml", tmp_path / "no.yaml")
    assert names(cluster, "pods") == []
