"""A writer that reports its successful writes, so that the next run of a key waits for the caches.

A write whose answer is lost is not reported: no version is known to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.writing.resource_writer import WrappedWriter, WriteCall


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

    async def _send(self, call: WriteCall) -> KubeObject | None:
        answer = await call.on(self.writer)
        if call.method == "delete":
            given: ObjectKey | str = call.arguments[0]
            key = ObjectKey.parse(given) if isinstance(given, str) else given
            key = ObjectKey(key.namespace or self.namespace, key.name)
            uid = call.options["uid"] or ("" if answer is None else answer.uid)
            self.recorder.record_deletion(self.resource, key, str(uid))
        elif answer is not None:
            self.recorder.record_write(self.resource, answer)
        return answer
