"""The rules for ``roleRef`` of RoleBindings and ClusterRoleBindings, which no update can change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses
from aioinformer.testing.writes.typed_bodies import convert_body
from aioinformer.testing.writes.write_options import unsupported_cause

RBAC_GROUP = "rbac.authorization.k8s.io"
_ROLE_KINDS: Mapping[str, tuple[str, ...]] = {
    "rolebindings": ("Role", "ClusterRole"),
    "clusterrolebindings": ("ClusterRole",),
}


class RoleReference(msgspec.Struct, rename="camel"):
    api_group: str | None = None
    kind: str | None = None
    name: str | None = None


class _Binding(msgspec.Struct, rename="camel"):
    role_ref: RoleReference | None = None


def check_role_reference(
    resource: Resource, body: Mapping[str, Any], stored: Mapping[str, Any] | None = None
) -> None:
    """Raise ``Invalid`` if a binding names no role, or another one than the ``stored`` binding."""
    if resource.group != RBAC_GROUP or resource.plural not in _ROLE_KINDS:
        return
    reference = _read(body)
    causes = [*_causes(reference, _ROLE_KINDS[resource.plural])]
    if stored is not None and reference != _read(stored):
        text = f"Invalid value: {msgspec.json.encode(reference).decode()}: field is immutable"
        causes.append({"reason": "FieldValueInvalid", "message": text, "field": "roleRef"})
    if causes:
        name = body["metadata"].get("name", "")
        raise statuses.invalid_fields(resource.kind, name, causes, group=resource.group)


def _read(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the ``roleRef`` with its default, by the names of the server's type, as in errors."""
    sent = convert_body(body, _Binding).role_ref or RoleReference()
    return {
        "APIGroup": sent.api_group or RBAC_GROUP,
        "Kind": sent.kind or "",
        "Name": sent.name or "",
    }


def _causes(reference: Mapping[str, str], kinds: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    for name, field, known in (("APIGroup", "apiGroup", (RBAC_GROUP,)), ("Kind", "kind", kinds)):
        if reference[name] not in known:
            yield unsupported_cause(f"roleRef.{field}", f'"{reference[name]}"', known)
    if not reference["Name"]:
        required = {"reason": "FieldValueRequired", "message": "Required value"}
        yield {**required, "field": "roleRef.name"}
