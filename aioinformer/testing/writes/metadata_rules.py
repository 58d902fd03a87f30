"""Rules for metadata: names, labels, annotations, owner references and finalizers.

The rules and their texts are those of apimachinery's ``ValidateObjectMeta``; only the rule for
names depends on the resource. A server names all causes in one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses

SUBDOMAIN_LIMIT, LABEL_LIMIT = 253, 63
ANNOTATIONS_LIMIT = 256 * 1024
"""Characters that all annotations of an object have together at most."""

_LABEL_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT = rf"{_LABEL_FORMAT}(\.{_LABEL_FORMAT})*"
_KEY_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORMAT = f"({_KEY_FORMAT})?"
_LABEL, _SUBDOMAIN, _KEY, _VALUE = map(
    re.compile, (_LABEL_FORMAT, _SUBDOMAIN_FORMAT, _KEY_FORMAT, _VALUE_FORMAT)
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_LABEL_FORMAT}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN_FORMAT}')"
)
_KEY_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_KEY_FORMAT}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
    f"'my_value',  or '12345', regex used for validation is '{_VALUE_FORMAT}')"
)

CHECKED_TEXTS = 4096
"""Namespaces, keys and values of labels whose checks are remembered: most objects have the same."""
UPDATE_VALIDATIONS = 3
"""Validations of a custom resource's update, each of which adds a cause to the details."""

_LABEL_NAMES = frozenset({"namespaces", "services"})
"""The resources whose names are DNS labels."""
_PATH_SEGMENT_GROUPS = frozenset({"rbac.authorization.k8s.io"})
"""The groups whose names are any segments of a path, such as ``system:node``."""
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")


def check_created_metadata(resource: Resource, metadata: Mapping[str, Any]) -> None:
    """Raise ``Invalid`` with all rules that a new object breaks; its name is already generated."""
    causes = [*_name_causes(resource, metadata), *_shared_causes(metadata)]
    _raise_invalid(resource, metadata.get("name") or "", causes)


def check_updated_metadata(
    resource: Resource, metadata: Mapping[str, Any], stored: Mapping[str, Any]
) -> None:
    """Raise ``Invalid`` with all rules that the next state breaks; its name is unchanged."""
    # A stored object passed the same rules, so that only what a write changes needs a check.
    changed = {
        name: value
        for name, value in metadata.items()
        if name in _CHECKS and value != stored.get(name)
    }
    if changed:
        causes = [*_shared_causes(changed)]
        _raise_invalid(resource, metadata["name"], causes, repeated=UPDATE_VALIDATIONS)


def _raise_invalid(
    resource: Resource, name: str, causes: list[dict[str, str]], *, repeated: int = 1
) -> None:
    if causes:
        raise statuses.invalid_fields(
            resource.kind, name, causes, group=resource.group, repeated=repeated
        )


def _name_causes(resource: Resource, metadata: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    if prefix:
        masked = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        for text in _name_errors(resource, masked):
            yield _invalid_cause("metadata.generateName", prefix, text)
    if not name:
        yield _required_cause("metadata.name", "name or generateName is required")
        return
    for text in _name_errors(resource, name):
        yield _invalid_cause("metadata.name", name, text)
    namespace = metadata.get("namespace")
    if namespace is not None:
        for text in _label_errors(namespace):
            yield _invalid_cause("metadata.namespace", namespace, text)


def _name_errors(resource: Resource, name: str) -> Iterable[str]:
    if len(name) <= LABEL_LIMIT and _LABEL.fullmatch(name):
        return ()  # the strictest rule, so that most names need no other check
    if resource.group in _PATH_SEGMENT_GROUPS:
        return _path_segment_errors(name)
    if str(resource) in _LABEL_NAMES:
        return _label_errors(name)
    return _subdomain_errors(name)


def _path_segment_errors(name: str) -> Iterator[str]:
    if name in (".", ".."):
        yield f"may not be '{name}'"
    elif "/" in name or "%" in name:
        yield "may not contain '/' or '%'"


@lru_cache(maxsize=CHECKED_TEXTS)
def _label_errors(name: str) -> tuple[str, ...]:
    return tuple(_find_label_errors(name))


def _find_label_errors(name: str) -> Iterator[str]:
    if len(name) > LABEL_LIMIT:
        yield _too_long(LABEL_LIMIT)
    if not _LABEL.fullmatch(name):
        yield "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _LABEL_TEXT


def _subdomain_errors(name: str, *, unit: str = "characters") -> Iterator[str]:
    if len(name) > SUBDOMAIN_LIMIT:
        yield _too_long(SUBDOMAIN_LIMIT, unit)
    if not _SUBDOMAIN.fullmatch(name):
        yield _SUBDOMAIN_TEXT


@lru_cache(maxsize=CHECKED_TEXTS)
def _qualified_name_errors(key: str) -> tuple[str, ...]:
    """Return the errors of the key of a label, of an annotation or of a finalizer."""
    return tuple(_find_key_errors(key))


def _find_key_errors(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield (
            f"a valid label key {_KEY_TEXT} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {text}" for text in _subdomain_errors(prefix, unit="bytes"))
    if not name:
        yield "name part must be non-empty"
    elif len(name) > LABEL_LIMIT:
        yield f"name part {_too_long(LABEL_LIMIT, 'bytes')}"
    if not _KEY.fullmatch(name):
        yield f"name part {_KEY_TEXT}"


# -- fields that creations and updates share ---------------------------------------------------


def _shared_causes(metadata: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for name, causes in _CHECKS.items():
        if value := metadata.get(name):
            yield from causes(value)


def _labels_causes(labels: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for key, value in labels.items():
        for text in _qualified_name_errors(key):
            yield _invalid_cause("metadata.labels", key, text)
        for text in _label_value_errors(value):
            yield _invalid_cause("metadata.labels", value, text)


@lru_cache(maxsize=CHECKED_TEXTS)
def _label_value_errors(value: str) -> tuple[str, ...]:
    too_long = [_too_long(LABEL_LIMIT, "bytes")] if len(value) > LABEL_LIMIT else []
    return (*too_long, *([] if _VALUE.fullmatch(value) else [_VALUE_TEXT]))


def _annotations_causes(annotations: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for key in annotations:
        for text in _qualified_name_errors(key.lower()):
            yield _invalid_cause("metadata.annotations", key, text)
    if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        text = f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"
        yield _cause("FieldValueTooLong", "metadata.annotations", text)


def _owner_references_causes(references: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for place, reference in enumerate(references):
        for name in _OWNER_FIELDS:
            if not reference.get(name):
                field = f"metadata.ownerReferences[{place}].{name}"
                yield _required_cause(field, "must not be empty")
    controllers = [
        f"{each.get('kind')}/{each.get('name')}" for each in references if each.get("controller")
    ]
    for name in controllers[1:]:
        text = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {name}"
        )
        # A real server prints the references as Go values with addresses of memory.
        yield _invalid_cause("metadata.ownerReferences", "...", text)


def _finalizers_causes(finalizers: Iterable[str]) -> Iterator[dict[str, str]]:
    for finalizer in finalizers:
        for text in _qualified_name_errors(finalizer):
            yield _invalid_cause("metadata.finalizers", finalizer, text)


_CHECKS: Mapping[str, Callable[[Any], Iterator[dict[str, str]]]] = {
    "labels": _labels_causes,
    "annotations": _annotations_causes,
    "ownerReferences": _owner_references_causes,
    "finalizers": _finalizers_causes,
}
"""The checks by field, in the server's order."""


def _too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def _invalid_cause(field: str, value: str, text: str) -> dict[str, str]:
    return _cause("FieldValueInvalid", field, f'Invalid value: "{value}": {text}')


def _required_cause(field: str, text: str) -> dict[str, str]:
    return _cause("FieldValueRequired", field, f"Required value: {text}")


def _cause(reason: str, field: str, text: str) -> dict[str, str]:
    return {"reason": reason, "message": text, "field": field}
