"""CustomResourceDefinitions: the resources that a definition in the cluster adds.

A definition is served as soon as it is stored, in each of its served versions: with its schema,
subresources and printer columns. All versions show the same objects, without conversion
(``strategy: None``; the objects of a conversion webhook are shown unconverted). A changed schema
changes the served content of stored objects under the same resourceVersions, and ends the watches.
A deleted definition deletes its objects first, and waits for their finalizers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from aioinformer._core.objects.resources import Resource, find_built_in
from aioinformer.testing.cluster.history import StoredChange
from aioinformer.testing.cluster.registry import Preconditions, Registry
from aioinformer.testing.cluster.storage import Collection, Mirror, Storage
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject, StoredObject
from aioinformer.testing.wire.json_paths import JsonPath
from aioinformer.testing.wire.served_resources import SCALE, STATUS, make_served
from aioinformer.testing.wire.tables import PrinterColumn
from aioinformer.testing.writes.scale import ScalePaths
from aioinformer.testing.writes.structural_schema import StructuralSchema
from aioinformer.testing.writes.typed_bodies import convert_body

DEFINITIONS = find_built_in("customresourcedefinitions")
_SCOPES = ("Cluster", "Namespaced")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
"""The types of the fields by which a selector can select custom objects."""
_KIND, _GROUP = DEFINITIONS.kind, DEFINITIONS.group


@dataclass(frozen=True, slots=True)
class DefinedVersion:
    resource: Resource
    body: Mapping[str, Any]
    """The version in the definition."""

    @property
    def schema(self) -> StructuralSchema:
        return StructuralSchema(self.resource, self.body["schema"]["openAPIV3Schema"])

    @property
    def scale_paths(self) -> ScalePaths | None:
        parts: JsonObject = self.body.get("subresources") or {}
        found: JsonObject | None = parts.get("scale")
        if found is None:
            return None
        selector = found.get("labelSelectorPath", "")
        return ScalePaths(found["specReplicasPath"], found["statusReplicasPath"], selector)

    @property
    def selectable_fields(self) -> frozenset[str]:
        """The field labels of selectors besides those of the metadata."""
        fields = self.body.get("selectableFields") or ()
        return frozenset(each["jsonPath"].removeprefix(".") for each in fields)

    @property
    def columns(self) -> tuple[PrinterColumn, ...]:
        return tuple(
            PrinterColumn(
                each["name"],
                each["type"],
                JsonPath(each["jsonPath"]),
                each.get("format", ""),
                each.get("description", ""),
                each.get("priority", 0),
            )
            for each in self.body.get("additionalPrinterColumns") or ()
        )


class _NamesBody(msgspec.Struct, rename="camel"):
    plural: str | None = None
    kind: str | None = None
    singular: str | None = None
    list_kind: str | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _SelectableFieldBody(msgspec.Struct, rename="camel"):
    json_path: str | None = None


class _VersionBody(msgspec.Struct, rename="camel"):
    """The checks of a version read what is inside its parts."""

    name: str | None = None
    served: bool | None = None
    storage: bool | None = None
    schema: dict[str, Any] | None = None
    subresources: dict[str, dict[str, Any] | None] | None = None
    additional_printer_columns: list[dict[str, Any]] | None = None
    selectable_fields: list[_SelectableFieldBody] | None = None


class _SpecBody(msgspec.Struct):
    group: str | None = None
    scope: str | None = None
    names: _NamesBody | None = None
    versions: list[_VersionBody] | None = None
    conversion: dict[str, Any] | None = None


class _DefinitionBody(msgspec.Struct):
    spec: _SpecBody | None = None
    status: dict[str, Any] | None = None


class _DefinitionRules:
    """The rules of definitions themselves: their defaults, and what makes one valid."""

    def prepare(self, body: JsonObject) -> JsonObject:
        convert_body(body, _DefinitionBody)
        spec = dict(body.get("spec") or {})
        names = dict(spec.get("names") or {})
        if kind := names.get("kind"):
            names = {"singular": str(kind).lower(), "listKind": f"{kind}List"} | names
        spec |= {"names": names}
        spec.setdefault("conversion", {"strategy": "None"})
        status = dict(body.get("status") or {})
        stored = [each.get("name") for each in spec.get("versions") or () if each.get("storage")]
        fresh: JsonObject = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
        return body | {"spec": spec, "status": fresh | {"storedVersions": stored} | status}

    def unknown_fields(self, body: JsonObject) -> Sequence[str]:
        return ()

    def check(self, body: JsonObject) -> None:
        """Raise ``Invalid`` with all reasons for which the definition can't be served."""
        name = body["metadata"]["name"]
        causes = list(_definition_causes(body["spec"], name))
        if not causes:
            causes = list(_resource_causes(body))
        if causes:
            raise statuses.invalid_fields(_KIND, name, causes, group=_GROUP)


def _definition_causes(spec: Mapping[str, Any], name: str) -> Iterator[dict[str, str]]:
    names = spec["names"]
    for field, value in (
        ("spec.group", spec.get("group")),
        ("spec.scope", spec.get("scope")),
        ("spec.names.plural", names.get("plural")),
        ("spec.names.kind", names.get("kind")),
        ("spec.versions", spec.get("versions")),
    ):
        if not value:
            yield _cause("FieldValueRequired", field, "Required value")
    scope = spec.get("scope")
    if scope and scope not in _SCOPES:
        known = ", ".join(f'"{each}"' for each in _SCOPES)
        text = f'Unsupported value: "{scope}": supported values: {known}'
        yield _cause("FieldValueNotSupported", "spec.scope", text)
    if name != f"{names.get('plural')}.{spec.get('group')}":
        text = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        yield _cause("FieldValueInvalid", "metadata.name", text)
    versions = spec.get("versions") or ()
    if sum(bool(each.get("storage")) for each in versions) != 1:
        text = "Invalid value: must have exactly one version marked as storage version"
        yield _cause("FieldValueInvalid", "spec.versions", text)
    for place, version in enumerate(versions):
        yield from _version_causes(version, f"spec.versions[{place}]")


def _resource_causes(definition: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    try:
        list(_defined_versions(definition))
    except ValueError as error:
        yield _cause("FieldValueInvalid", "spec", f"Invalid value: {error}")


def _version_causes(version: Mapping[str, Any], field: str) -> Iterator[dict[str, str]]:
    if not version.get("name"):
        yield _cause("FieldValueRequired", f"{field}.name", "Required value")
    found: JsonObject = version.get("schema") or {}
    schema = found.get("openAPIV3Schema")
    path = f"{field}.schema.openAPIV3Schema"
    if not isinstance(schema, Mapping):
        yield _cause("FieldValueRequired", path, "Required value: schemas are required")
        return
    try:
        defined = DefinedVersion(Resource("a", "v1", "b", "C"), version)
        _ = defined.schema, defined.columns, defined.scale_paths
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        yield _cause("FieldValueInvalid", field, f"Invalid value: {error}")
    fields = cast("Mapping[str, Any]", schema)
    for place, each in enumerate(version.get("selectableFields") or ()):
        found_at = f"{field}.selectableFields[{place}].jsonPath"
        yield from _selectable_field_causes(each.get("jsonPath") or "", fields, found_at)


def _selectable_field_causes(
    path: str, schema: Mapping[str, Any], field: str
) -> Iterator[dict[str, str]]:
    if not path:
        yield _cause("FieldValueRequired", field, "Required value")
        return
    invalid = f'Invalid value: "{path}"'
    names = path.removeprefix(".").split(".")
    if names[0] == "metadata":
        text = f"{invalid}: must not point to fields in metadata"
        yield _cause("FieldValueInvalid", field, text)
        return
    found: JsonObject | None = dict(schema)
    for name in names:
        properties: JsonObject = (found or {}).get("properties") or {}
        found = properties.get(name)
    if found is None:
        text = f"{invalid}: is an invalid path: does not refer to a valid field"
        yield _cause("FieldValueInvalid", field, text)
    elif found.get("type") not in _SELECTABLE_TYPES:
        text = (
            f"{invalid}: must point to a field of type string, boolean or integer. Enum string "
            "fields and strings with formats are allowed."
        )
        yield _cause("FieldValueInvalid", field, text)


def _cause(reason: str, field: str, text: str) -> dict[str, str]:
    return {"reason": reason, "message": text, "field": field}


class DefinitionController:
    """The controller that serves the resources of the definitions in a cluster."""

    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry
        self._versions: dict[Resource, DefinedVersion] = {}
        self._storage.find(DEFINITIONS).rules = _DefinitionRules()

    def has_schema(self, resource: Resource) -> bool:
        return resource in self._versions

    def scale_paths(self, resource: Resource) -> ScalePaths | None:
        version = self._versions.get(resource)
        return version.scale_paths if version is not None else None

    def columns(self, resource: Resource) -> tuple[PrinterColumn, ...]:
        version = self._versions.get(resource)
        return version.columns if version is not None else ()

    def selectable_fields(self, resource: Resource) -> frozenset[str]:
        version = self._versions.get(resource)
        return version.selectable_fields if version is not None else frozenset()

    def observe(self, change: StoredChange) -> None:
        """Serve what a changed definition says, or complete its deletion."""
        if change.resource == DEFINITIONS:
            self._sync(change)
        elif change.new is None and change.resource in self._versions:
            self._complete_deletion(self._definition_of(change.resource))

    def rebuild(self) -> None:
        collection = self._storage.find(DEFINITIONS)
        collection.rules = _DefinitionRules()
        self._versions.clear()
        for stored in list(collection.objects.values()):
            self._serve(stored.body)

    def _sync(self, change: StoredChange) -> None:
        old, new = change.old, change.new
        if new is None:
            return
        if "deletionTimestamp" in new.metadata:
            if old is not None and "deletionTimestamp" not in old.metadata:
                self._delete_objects(new)
            return
        if old is None or old.body["spec"] != new.body["spec"]:
            self._serve(new.body)
        if not new.body["status"].get("conditions"):
            self._accept_names(new)

    # -- serving -------------------------------------------------------------------------------

    def _serve(self, definition: Mapping[str, Any]) -> None:
        versions = list(_defined_versions(definition))
        base = next(each for each in versions if each.body.get("storage"))
        stored = self._prepare_base(base)
        for version in versions:
            resource = version.resource
            if not version.body.get("served"):
                if resource in self._versions and version is not base:
                    self._stop(resource)
                continue
            known = resource in self._versions
            self._add(version, base)
            collection = self._storage.find(resource)
            collection.rules = version.schema
            if collection is not stored and collection.mirror is None:
                self._storage.add_mirror(collection, _make_mirror(stored, base, version))
            if known:
                self._storage.restart_watches(resource)

    def _prepare_base(self, base: DefinedVersion) -> Collection:
        known = base.resource in self._versions
        self._add(base, base)
        collection, schema = self._storage.find(base.resource), base.schema
        collection.rules = schema
        if known or collection.objects:
            self._storage.convert(collection, schema.prepare)
        return collection

    def _add(self, version: DefinedVersion, base: DefinedVersion) -> None:
        parts: JsonObject = version.body.get("subresources") or {}
        categories = tuple(version.body.get("categories") or ())
        self._storage.add(
            make_served(
                version.resource,
                subresources=[each for each in (STATUS, SCALE) if each.name in parts],
                categories=categories,
                storage_version=base.resource.version,
            )
        )
        self._versions[version.resource] = version

    def _accept_names(self, definition: StoredObject) -> None:
        now = self._registry.clock().astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            _condition("NamesAccepted", now, "NoConflicts", "no conflicts found"),
            _condition(
                "Established", now, "InitialNamesAccepted", "the initial names have been accepted"
            ),
        ]
        status = definition.body["status"] | {
            "conditions": conditions,
            "acceptedNames": definition.body["spec"]["names"],
        }
        collection = self._storage.find(DEFINITIONS)
        self._storage.store(collection, definition, definition.body | {"status": status})

    # -- deletion ------------------------------------------------------------------------------

    def _delete_objects(self, definition: StoredObject) -> None:
        for collection in self._stored_collections(definition):
            for stored in list(collection.objects.values()):
                conditions = Preconditions(stored.uid)
                resource, namespace = collection.encoding.resource, stored.namespace or None
                self._registry.delete(resource, stored.name, namespace, preconditions=conditions)
        self._complete_deletion(definition)

    def _complete_deletion(self, definition: StoredObject | None) -> None:
        """Remove a definition that is being deleted, once it has no objects left."""
        if definition is None or "deletionTimestamp" not in definition.metadata:
            return
        if any(collection.objects for collection in self._stored_collections(definition)):
            return
        collection = self._storage.find(DEFINITIONS)
        present = collection.objects.get(definition.key)
        if present is None:
            return
        for version in _defined_versions(definition.body):
            if version.resource in self._versions:
                self._stop(version.resource)
        self._storage.store(collection, present, None)

    def _stop(self, resource: Resource) -> None:
        del self._versions[resource]
        self._storage.remove(self._storage.find(resource))

    def _stored_collections(self, definition: StoredObject) -> Iterator[Collection]:
        for version in _defined_versions(definition.body):
            if version.resource in self._versions and version.body.get("storage"):
                yield self._storage.find(version.resource)

    def _definition_of(self, resource: Resource) -> StoredObject | None:
        name = f"{resource.plural}.{resource.group}"
        return self._storage.find(DEFINITIONS).objects.get(name)


def _condition(kind: str, time: str, reason: str, message: str) -> JsonObject:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    }


def _defined_versions(definition: Mapping[str, Any]) -> Iterator[DefinedVersion]:
    spec = definition["spec"]
    names = spec["names"]
    categories = names.get("categories") or ()
    for version in spec["versions"]:
        resource = Resource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names.get("singular") or "",
            short_names=tuple(names.get("shortNames") or ()),
        )
        yield DefinedVersion(resource, {**version, "categories": categories})


def _make_mirror(stored: Collection, base: DefinedVersion, version: DefinedVersion) -> Mirror:
    own, stored_schema = version.schema, base.schema

    def to_base(body: JsonObject) -> JsonObject:
        return stored_schema.prepare(body | {"apiVersion": base.resource.api_version})

    def from_base(body: JsonObject) -> JsonObject:
        return own.prepare(body | {"apiVersion": version.resource.api_version})

    return Mirror(stored, to_base, from_base)
