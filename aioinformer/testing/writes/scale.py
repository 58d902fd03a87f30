"""The scale subresource: the ``Scale`` of an object, and writes of it.

A ``Scale`` (autoscaling/v1) shows two numbers and a selector, so that ``kubectl scale`` and
autoscalers work with any kind. Workloads of built-in groups have fixed paths; a custom resource
names them in its definition. Source: apiextensions-apiserver's ``ScaleREST``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.parsed_selectors import LabelSelector
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject
from aioinformer.testing.writes.patches import BodyPatch
from aioinformer.testing.writes.typed_bodies import convert_body

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
"""The metadata that a ``Scale`` shares with its object."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The places of the fields of a ``Scale`` in an object, such as ``.spec.replicas``."""

    replicas: str
    status_replicas: str
    selector: str = ""
    """The place of a text, or of a mapping in the form of built-in types."""


BUILT_IN_SCALE = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")
"""The paths of Deployments, ReplicaSets, StatefulSets and ReplicationControllers."""


def build_scale(body: JsonObject, paths: ScalePaths) -> JsonObject:
    """Return the ``Scale``; raise ``ServerFailure`` for a custom object without replicas."""
    replicas = _get(body, paths.replicas)
    if replicas is None and paths is not BUILT_IN_SCALE:
        raise statuses.missing_replicas(paths.replicas)
    metadata = {name: body["metadata"][name] for name in _IDENTITY if name in body["metadata"]}
    status: JsonObject = {"replicas": _get(body, paths.status_replicas) or 0}
    if selector := _format_selector(_get(body, paths.selector)):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {} if replicas is None else {"replicas": replicas},
        "status": status,
    }


def _format_selector(found: Any) -> str:
    if not isinstance(found, Mapping):
        return found if isinstance(found, str) else ""
    return str(LabelSelector.parse(cast("Mapping[str, Any]", found)))


class _SentScaleMeta(msgspec.Struct, rename="camel"):
    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _SentScaleSpec(msgspec.Struct):
    replicas: int | None = None


class _SentScale(msgspec.Struct):
    metadata: _SentScaleMeta | None = None
    spec: _SentScaleSpec | None = None


@dataclass(frozen=True, slots=True)
class ScaleReplacement:
    """An update of the ``Scale`` of an object, as a change of the object."""

    resource: Resource
    scale: Mapping[str, Any]
    paths: ScalePaths

    def apply(self, body: JsonObject) -> JsonObject:
        """Return the body with the replicas of the ``Scale``, and its preconditions.

        Raises:
            BadRequest: the ``Scale`` is that of another object, or a field has the wrong type.
            Conflict: the object has another uid.
            Invalid: the replicas are negative.
        """
        sent = convert_body(self.scale, _SentScale)
        metadata, name = sent.metadata or _SentScaleMeta(), body["metadata"]["name"]
        if metadata.name is not None and metadata.name != name:
            raise statuses.bad_request(
                f"the name of the object ({metadata.name}) does not match the name on the "
                f"URL ({name})"
            )
        uid, own_uid = metadata.uid, body["metadata"]["uid"]
        if uid and uid != own_uid:
            raise statuses.failed_precondition(self.resource, name, "UID", uid, own_uid)
        version = metadata.resource_version
        condition = {"resourceVersion": version} if version else {}
        changed = body | {"metadata": body["metadata"] | condition}
        replicas = (sent.spec.replicas if sent.spec else None) or 0
        _check_replicas(self.resource, replicas, name, self.paths)
        return _set(changed, self.paths.replicas, replicas)


@dataclass(frozen=True, slots=True)
class ScalePatch:
    """A patch of the ``Scale`` of an object, as a change of the object."""

    resource: Resource
    patch: BodyPatch
    paths: ScalePaths

    def apply(self, body: JsonObject) -> JsonObject:
        """Return the body with the replicas of the patched ``Scale``, or raise ``ServerError``."""
        complete = body
        if _get(body, self.paths.replicas) is None:
            complete = _set(body, self.paths.replicas, 0)
        patched = self.patch.apply(build_scale(complete, self.paths))
        return ScaleReplacement(self.resource, patched, self.paths).apply(body)


def _check_replicas(resource: Resource, replicas: int, name: str, paths: ScalePaths) -> None:
    if replicas < 0 and paths is not BUILT_IN_SCALE:
        text = f"Invalid value: {replicas}: should be a non-negative integer"
        raise statuses.invalid(
            resource.kind, name, paths.replicas, "FieldValueInvalid", text, group=resource.group
        )
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise statuses.invalid(
            "Scale", name, "spec.replicas", "FieldValueInvalid", text, group="autoscaling"
        )


def _get(body: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path such as ``.spec.replicas``; ``None`` if there is none."""
    value: Any = body if path else None
    for name in path.strip(".").split("."):
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, Any]", value).get(name)
    return value


def _set(body: JsonObject, path: str, value: Any) -> JsonObject:
    name, _, rest = path.strip(".").partition(".")
    inner = body.get(name)
    if rest:
        value = _set(cast("JsonObject", inner) if isinstance(inner, dict) else {}, rest, value)
    return body | {name: value}
