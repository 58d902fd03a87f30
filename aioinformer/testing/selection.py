"""Which objects a list or watch is about: namespace, labels, fields, shard.

A server supports few field labels, and each type its own; the table is that of Kubernetes 1.36
(the ``AddFieldLabelConversionFunc`` of each group). Everything else is refused (recording 22).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from aioinformer._core.selectors import FieldSelector, LabelSelector
from aioinformer.errors import InvalidSelector
from aioinformer.testing import statuses
from aioinformer.testing.encoding import Encoding, Stored
from aioinformer.testing.shards import ShardSelector

_METADATA = ("metadata.name", "metadata.namespace")

_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
}
_PATHS = {"source": "source.component"}
"""Where the value is, if not where the label says."""
_BOOLEANS = ("spec.unschedulable", "spec.hostNetwork")
_NUMBERS = ("status.replicas", "status.successful")


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace (``None``: all), a label selector, a field selector and a shard."""

    namespace: str | None = None
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    shard: ShardSelector = field(default_factory=ShardSelector)

    @classmethod
    def parse(
        cls, encoding: Encoding, namespace: str | None, labels: str, fields: str, shard: str = ""
    ) -> Selection:
        """The selection that a request means.

        Raises:
            NotFound: a namespace for a cluster-scoped resource.
            BadRequest: a selector doesn't parse, or names a field that can't be selected by.
            ServerFailure: the shard selector doesn't parse.
        """
        if namespace and not encoding.resource.namespaced:
            raise statuses.resource_not_found()
        try:
            selection = cls(
                namespace or None,
                LabelSelector.parse(labels),
                FieldSelector.parse(fields),
                ShardSelector.parse(shard),
            )
        except InvalidSelector as error:
            raise statuses.bad_selector(error) from error
        for requirement in selection.fields.requirements:
            _check_field(encoding, requirement.path)
        return selection

    @property
    def prefix(self) -> str:
        """How the keys of the selected objects begin."""
        return f"{self.namespace}/" if self.namespace else ""

    @property
    def whole(self) -> bool:
        """Whether every object of the scope is selected."""
        return not (self.labels or self.fields or self.shard)

    def matches(self, stored: Stored | None) -> bool:
        """Whether an object is selected; nothing is not."""
        if stored is None or (self.namespace and stored.namespace != self.namespace):
            return False
        if self.labels and not self.labels.matches(stored.body["metadata"].get("labels") or {}):
            return False
        if self.fields and not self.fields.matches(_reader(stored.body)):
            return False
        return self.shard.matches(stored)


def _check_field(encoding: Encoding, path: str) -> None:
    special = _FIELDS.get(str(encoding.resource))
    if path in _METADATA or path in (special or ()):
        return
    if special is not None or encoding.custom:
        raise statuses.bad_request(f"field label not supported: {path}")
    known = ", ".join(f'"{name}"' for name in _METADATA)
    raise statuses.bad_request(f'"{path}" is not a known field selector: only {known}')


def _reader(body: dict[str, Any]) -> Callable[[str], str]:
    """The value of a path, as the server prints it for comparison."""

    def read(path: str) -> str:
        value: Any = body
        for name in _PATHS.get(path, path).split("."):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if path in _BOOLEANS:
            return "true" if value else "false"
        if value is None:
            return "0" if path in _NUMBERS else ""
        return str(value)

    return read
