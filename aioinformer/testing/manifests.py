"""Objects from YAML or JSON manifests, as ``kubectl apply -f`` reads them, for a ``Cluster``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from aioinformer._client.kubeconfig.go_yaml import decode_yaml_documents
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ServerError, UsageError
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire.served_resources import ServedResources

SUFFIXES = (".yaml", ".yml", ".json")
"""The files that are read of a folder, as by kubectl."""
FIRST_KINDS = ("CustomResourceDefinition", "Namespace")
"""The kinds that are created before the others, whatever the order of the files."""


def load_manifests(cluster: Cluster, *paths: str | os.PathLike[str]) -> int:
    """Create the objects of files and folders in a cluster, status included; return their number.

    A file can have several documents, and a document can be a ``List``. Of a folder, the files that
    end in ``.yaml``, ``.yml`` or ``.json`` are read, and those of its subfolders.
    CustomResourceDefinitions and Namespaces are created first. Nothing is created unless all files
    can be read. ::

        cluster = Cluster()
        load_manifests(cluster, "deploy/crds.yaml", "tests/objects")

    Raises:
        UsageError: a file can't be read, is not a manifest, or has an object that can't be created.
            The message names the file and the object.
    """
    manifests = [each for path in paths for each in _read_path(Path(path))]
    # The sort is stable: within a rank, the order is that of the files.
    manifests.sort(key=lambda each: each.rank)
    kinds = _Kinds(cluster)
    for each in manifests:
        each.create(kinds)
    return len(manifests)


class _Kinds:
    """The resources of a cluster by apiVersion and kind."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._served: ServedResources | None = None
        self._resources: dict[tuple[str, str], Resource] = {}

    def find(self, api_version: str, kind: str) -> Resource | None:
        if self._served is not self.cluster.served:  # a definition was loaded
            self._served = self.cluster.served
            self._resources = {
                (each.api_version, each.kind): each for each in reversed(self.cluster.resources)
            }
        return self._resources.get((api_version, kind))


@dataclass(frozen=True, slots=True)
class _Manifest:
    path: Path
    body: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.body.get("kind") or "")

    @property
    def rank(self) -> int:
        return FIRST_KINDS.index(self.kind) if self.kind in FIRST_KINDS else len(FIRST_KINDS)

    def create(self, kinds: _Kinds) -> None:
        """Create the object. A definition is served from then on."""
        api_version = str(self.body.get("apiVersion") or "")
        resource = kinds.find(api_version, self.kind)
        if resource is None:
            raise self.error(
                f"no resource of the cluster has apiVersion {api_version!r} and kind "
                f"{self.kind!r}; load its CustomResourceDefinition too"
            )
        try:
            kinds.cluster.registry.create(resource, self.body, None)
        except ServerError as error:
            raise self.error(error.status.message) from error

    def error(self, reason: str) -> UsageError:
        metadata: object = self.body.get("metadata")
        named = cast("Mapping[str, Any]", metadata if isinstance(metadata, Mapping) else {})
        name = named.get("name")
        return UsageError(f"{self.path}: {self.kind or 'object'} {name or '(no name)'}: {reason}")


# -- files -------------------------------------------------------------------------------------


def _read_path(path: Path) -> list[_Manifest]:
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
        return [manifest for each in found for manifest in _read_file(each)]
    return list(_read_file(path))


def _read_file(path: Path) -> Iterator[_Manifest]:
    try:
        content = path.read_bytes()
        # The decoder of JSON is a hundred times as fast as that of YAML.
        documents: list[object] = (
            [msgspec.json.decode(content)]
            if path.suffix == ".json"
            else list(decode_yaml_documents(content))
        )
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from error
    for document in documents:
        if document is not None:  # an empty document, as after a last "---"
            yield from _unpack(path, document)


def _unpack(path: Path, document: object) -> Iterator[_Manifest]:
    if not isinstance(document, Mapping) or "kind" not in document:
        raise UsageError(f"{path}: a manifest is an object with apiVersion and kind")
    body = cast("Mapping[str, Any]", document)
    items: object = body.get("items")
    if str(body["kind"]).endswith("List") and isinstance(items, Sequence):
        for item in cast("Sequence[object]", items):
            yield from _unpack(path, item)
    else:
        yield _Manifest(path, body)
