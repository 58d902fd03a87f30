"""The comparison of two objects by version and content, and the events for the differences.

Equal resourceVersions prove nothing by themselves: a new schema of a custom resource, an upgrade of
the API server or another conversion webhook changes what is served without a write, and a server
that was restored from a backup gives versions a second time. Objects are stored in one form, so
that the comparison of unchanged objects is a comparison of bytes.
"""

from __future__ import annotations

from msgspec.json import encode

from aioinformer._core.chunked_list import ChunkedList
from aioinformer._core.objects.kube_object import (
    SAME_VERSION,
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    Updated,
    compare_identity,
)
from aioinformer._core.objects.readonly import is_same_decoded
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer.errors import ObjectDecodeError

__all__ = [
    "append_change",
    "has_equal_content",
    "is_same_content",
    "removal_reason",
    "without_traceback",
]


def is_same_content(old: KubeObject, new: KubeObject) -> bool:
    """Return True if both are the same version of one object with equal content."""
    if old is new:
        return True
    if compare_identity(old, new) != SAME_VERSION:
        return False
    if old.api_version != new.api_version:  # read in another API version of the resource
        return False
    if type(new) is ExcludedObject:
        return False
    return has_equal_content(old, new)


def has_equal_content(old: KubeObject, new: KubeObject) -> bool:
    """Return True if two objects have equal content, whether they were listed or watched.

    If the bytes differ, the bodies are decoded and compared, since another server may have another
    order of keys. A kind and apiVersion that only one of the objects has don't count. Models are
    compared by their own ``==``, or by their JSON if their class compares identities. If that
    raises, the objects count as different: a redundant update is better than a lost one.
    """
    if old.raw and old.raw == new.raw:
        return True
    try:
        before, after = _content(old), _content(new)
        if type(old) is ModelObject:
            return bool(before == after) or encode(before) == encode(after)
        return is_same_decoded(before, after)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a program's model may raise anything
        return False


def _content(obj: KubeObject) -> object:
    """Return an object's content without kind and apiVersion, which the items of a list lack."""
    if type(obj) is ModelObject:
        return obj.model
    try:
        body = obj.to_dict()
    except ObjectDecodeError:
        return obj.raw
    return {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}


def removal_reason(old: KubeObject, obj: ExcludedObject) -> DeleteReason | None:
    """Return why the excluded ``obj`` removes ``old`` from the cache; ``None`` if ``old`` stays."""
    if old.uid != obj.uid:  # ``old`` was deleted and re-created under its name
        return "vanished"
    return "dropped" if obj.error is None else None


def without_traceback(error: Exception) -> Exception:
    """Return ``error`` without its traceback and those of its causes: frames keep objects alive."""
    cause = error.__cause__
    while cause is not None and cause.__traceback__ is not None:
        cause.__traceback__ = None
        cause = cause.__cause__
    return error.with_traceback(None)


def append_change(
    old: KubeObject, new: KubeObject, events: list[Event] | ChunkedList[Event]
) -> None:
    """Append the events for ``new`` in the place of ``old``."""
    if old.uid == new.uid:
        events.append(Updated(old, new))
    else:
        events.extend((Deleted(old, "vanished"), Added(new)))
