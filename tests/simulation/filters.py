"""The filters of listeners.

``filter_of`` returns the filter for the library. ``passes`` and ``shown`` answer the same question
about what was written, and share no code with the library.
"""

from __future__ import annotations

from collections.abc import Callable

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.selectors.predicates import changed, labelled, where
from tests.simulation.records import Write

_RAISES = 3
"""The remainder of an object's value divided by 7 at which a raising filter raises."""


class FilterFailed(Exception):
    """The error of a raising filter."""


def filter_of(
    passing: str, changes: str = "", raised: Callable[[], None] = lambda: None
) -> Filter | None:
    """Return the value of ``filter=`` for a listener.

    Args:
        passing: an ``app=`` or ``node=``, with a ``!`` for a filter that raises; "" for none.
        changes: the part whose changes pass, ``app`` or ``node``; "" for all.
        raised: called before the filter raises.
    """
    if changes:
        return changed("metadata.labels.app" if changes == "app" else "spec.nodeName")
    what, _, value = passing.rstrip("!").partition("=")
    if not what:
        return None
    predicate = labelled(f"app={value}") if what == "app" else where("spec.nodeName", value)
    if not passing.endswith("!"):
        return predicate

    def raising_at_some(obj: KubeObject) -> bool:
        if obj["spec"]["value"] % 7 == _RAISES:
            raised()
            raise FilterFailed(f"at {obj.key}")
        return predicate(obj)

    return raising_at_some


def passes(passing: str, write: Write) -> bool:
    """Return True if a listener with this filter receives the written object.

    An object at which a filter raises is delivered.
    """
    what, _, value = passing.rstrip("!").partition("=")
    if passing.endswith("!") and write.value % 7 == _RAISES and not write.deleted:
        return True
    return not what or value == (write.app if what == "app" else write.node)


def shown(changes: str, write: Write) -> str:
    """Return the part of a written object whose changes a listener receives."""
    return write.app if changes == "app" else write.node
