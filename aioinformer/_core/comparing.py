"""Whether a version of an object says anything new, and what that means for listeners.

A server stamps a version on every change, so that equal versions are equal objects; but after it
went back in time they prove nothing, and what is in the objects is compared. Who asks is
``indexer``, and ``verification``.
"""

from __future__ import annotations

from aioinformer._core.items import Modelled, Withheld
from aioinformer._core.objects import Added, Deleted, DeleteReason, Event, KubeObject, Updated
from aioinformer.errors import ObjectDecodeError

__all__ = ["append_change", "equal", "parted", "same", "same_content", "untraced"]


def same(old: KubeObject, new: KubeObject) -> bool:
    """Whether ``new`` says nothing new. A server stamps a version on every change."""
    version = new.resource_version  # first: mostly another one, and then that is all
    return old.resource_version == version and old.uid == new.uid and bool(version)


def same_content(old: KubeObject, new: KubeObject) -> bool:
    """Whether ``new`` says nothing new, whatever its version. The items of a list lack the kind
    and apiVersion that the events of a watch have (recordings 10 and 30).
    """
    if old.uid != new.uid or old.resource_version != new.resource_version:
        return False
    if old.api_version != new.api_version:  # read in another version of the resource
        return False
    if type(new) is Withheld:
        return False
    return equal(old, new)


def equal(old: KubeObject, new: KubeObject) -> bool:
    """Whether the same is in both, however they were read.

    Models are compared by their own ``==``. One that raises has not said that they are the same:
    then a change is told that is none, rather than one kept back.
    """
    if old.raw and old.raw == new.raw:
        return True
    try:
        return bool(_content(old) == _content(new))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a program's model may raise anything
        return False


def _content(obj: KubeObject) -> object:
    """What is in it: the items of a list lack kind and apiVersion."""
    if type(obj) is Modelled:
        return obj.model
    try:
        body = obj.to_dict()
    except ObjectDecodeError:
        return obj.raw
    return {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}


def parted(old: KubeObject, obj: Withheld) -> DeleteReason | None:
    """Why ``old`` is held no more, now that ``obj`` is withheld; ``None`` if it stays."""
    if old.uid != obj.uid:  # the object that was cached is certainly gone
        return "vanished"
    return "dropped" if obj.error is None else None


def untraced(error: Exception) -> Exception:
    """The same without what its tracebacks keep alive."""
    if error.__cause__ is not None:
        error.__cause__.__traceback__ = None
    return error.with_traceback(None)


def append_change(old: KubeObject, new: KubeObject, events: list[Event]) -> None:
    """What it means that ``new`` comes in the place of ``old``."""
    if old.uid == new.uid:
        events.append(Updated(old, new))
    else:
        events += (Deleted(old), Added(new))
