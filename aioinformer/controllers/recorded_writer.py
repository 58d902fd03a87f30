"""A writer that reports its successful writes, so that the next run of a key waits for the caches.

A write whose answer is lost is not reported: no version is known to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.writing.resource_writer import WrappedWriter


class WriteRecorder(Protocol):
    """Receives the writes that a server has accepted."""

    def record_write(self, resource: Resource, obj: KubeObject) -> None:
        """Note that the server stored ``obj``."""

    def record_deletion(self, resource: Resource, key: ObjectKey, uid: str) -> None:
        """Note that the server accepted a deletion. ``uid`` is empty if it is unknown."""


@dataclass(frozen=True, slots=True)
class RecordedWriter(WrappedWriter):
    """A ``ResourceWriter`` that passes each successful write to a recorder."""

    recorder: WriteRecorder
    namespace: str = ""
    """The namespace of keys without one; empty if each key names its own."""

    def _written(self, obj: KubeObject) -> None:
        self.recorder.record_write(self.resource, obj)

    def _deleted(self, key: ObjectKey | str, uid: str) -> None:
        found = ObjectKey.parse(key) if isinstance(key, str) else key
        full_key = ObjectKey(found.namespace or self.namespace, found.name)
        self.recorder.record_deletion(self.resource, full_key, uid)
