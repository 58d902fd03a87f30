"""Objects for the tests of compression: pods as a cluster has them, whole and compressed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from aioinformer import KubeObject, ObjectKey
from aioinformer._core.compression.compressed_object import CompressedObject
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.zstd import find_zstd
from aioinformer._core.objects.kube_object import create_object, create_packed_object
from benchmarks.load.workloads import make_pods
from tests.core.builders import PODS

__all__ = ["compress", "compress_batch", "object_of", "pod_bodies", "trained_compressor"]


@cache
def pod_bodies(count: int = 200) -> tuple[bytes, ...]:
    """Return the JSON of pods of many workloads."""
    return tuple(make_pods(count))


def object_of(raw: bytes, *, packed: bool = True) -> KubeObject:
    """Return the object with this JSON, of a list or (not packed) of a watch."""
    metadata = json.loads(raw)["metadata"]
    key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
    create = create_packed_object if packed else create_object
    return create(key, metadata["uid"], metadata["resourceVersion"], raw, PODS)


def trained_compressor(samples: Sequence[bytes]) -> Compressor:
    """Return a compressor with a dictionary made of these bodies."""
    compressor = Compressor(find_zstd())
    size = sum(map(len, samples))
    compressor.install(compressor.train(samples, size), size)
    assert compressor.dictionary_bytes
    return compressor


def compress(
    obj: KubeObject,
    compressor: Compressor | None = None,
    values: Mapping[str, tuple[str, ...]] | None = None,
) -> KubeObject:
    """Compress an object in place, and return it."""
    compressor = compressor or Compressor(find_zstd())
    assert compressor.is_due(obj)
    assert compressor.store(obj, compressor.compress(obj, values or {})) > 0
    assert type(obj) is CompressedObject
    return obj


def compress_batch(compressor: Compressor, owner: bytes, objects: Sequence[KubeObject]) -> None:
    """Compress objects of one owner in place, as a batch."""
    batch = compressor.batch(owner, objects)
    for obj in objects:
        assert compressor.store(obj, batch.compress(obj, {})) > 0


def change(raw: bytes, **fields: Any) -> bytes:
    """Return the JSON with other fields of metadata."""
    body = json.loads(raw)
    body["metadata"].update(fields)
    return json.dumps(body, separators=(",", ":")).encode()
