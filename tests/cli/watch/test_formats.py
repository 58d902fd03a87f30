"""The forms of a change: JSON, YAML, names, rows."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest
import yaml

from aioinformer import Added, Deleted, Resource, Updated
from aioinformer._cli.watch.formats import (
    JsonFormat,
    NameFormat,
    OutputFormat,
    YamlFormat,
    create_format,
)
from aioinformer._cli.watch.server_tables import Column
from aioinformer.errors import InvalidPath
from tests.cli.pods import pod

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
COLUMNS = (Column("Name"), Column("Ready"), Column("Node", 1))


def form(output: str) -> OutputFormat:
    return create_format(output, columns=lambda: COLUMNS, namespaces=True, colour=False)


def test_json_is_one_compact_line_with_the_type_first() -> None:
    assert JsonFormat().format_change(Added(pod(spec={"x": 1.0}), initial=True), NOW) == (
        b'{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0",'
        b'"uid":"web-0","resourceVersion":"7","namespace":"shop",'
        b'"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"x":1.0}}}\n'
    )


def test_json_carries_the_group_of_other_resources() -> None:
    found = msgspec.json.decode(JsonFormat().format_change(Deleted(pod(resource=DEPLOYMENTS)), NOW))

    assert (found["type"], found["object"]["apiVersion"]) == ("DELETED", "apps/v1")


def test_yaml_is_a_document_with_the_type_in_a_comment() -> None:
    old, new = pod(), pod(version="8", data={"text": "a " * 100, "ü": "\x1b[31m"})
    text = YamlFormat().format_change(Updated(old, new), NOW)

    assert text.startswith("---\n# MODIFIED\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web-0\n")
    assert "\x1b" not in text
    assert yaml.safe_load(text) == {"apiVersion": "v1", "kind": "Pod", **new.to_dict()}


@pytest.mark.parametrize("output", ["json", "yaml", "name", "wide", "fields=metadata.name"])
def test_no_text_of_an_object_controls_the_terminal(output: str) -> None:
    odd = "a\nforged\r\x00\x1b[31m\u2028\u202e\x85\U000e0001ü"
    new = pod(name=odd, data={odd: [odd]})
    chosen = form(output)
    text = chosen.format_change(Added(new, initial=False), NOW)
    shown = text if isinstance(text, str) else text.decode()

    assert all(map(str.isprintable, shown.split("\n")))
    assert not any(line.startswith("forged") for line in shown.split("\n"))
    if output == "json":
        assert msgspec.json.decode(shown)["object"]["data"] == {odd: [odd]}
    if output == "yaml":
        assert yaml.safe_load(shown)["data"] == {odd: [odd]}


@pytest.mark.parametrize(
    ("resource", "name"),
    [(None, "pod/web-0\n"), (DEPLOYMENTS, "deployment.apps/web-0\n")],
)
def test_a_name_is_written_as_kubectl_writes_it(resource: Resource | None, name: str) -> None:
    obj = pod(resource=resource) if resource else pod()

    assert NameFormat().format_change(Added(obj), NOW) == name


@pytest.mark.parametrize(
    ("output", "header"),
    [
        ("table", ["EVENT", "NAMESPACE", "NAME", "READY"]),
        ("wide", ["EVENT", "NAMESPACE", "NAME", "READY", "NODE"]),
        ("fields=metadata.uid", ["EVENT", "metadata.uid"]),
        ("json", []),
        ("yaml", []),
        ("name", []),
    ],
)
def test_only_tables_have_a_header(output: str, header: list[str]) -> None:
    assert form(output).format_header([], NOW).split() == header


@pytest.mark.parametrize(
    ("output", "whole"),
    [
        ("table", False),
        ("wide", False),
        ("name", False),
        ("json", True),
        ("yaml", True),
        ("fields=a", True),
    ],
)
def test_whole_objects_are_requested_only_by_forms_that_show_them(output: str, whole: bool) -> None:
    assert form(output).whole_objects is whole


def test_a_bad_path_is_a_mistake() -> None:
    with pytest.raises(InvalidPath):
        form("fields=a..b")
