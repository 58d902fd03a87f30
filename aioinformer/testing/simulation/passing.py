"""Which objects a filtered listener hears of: the question, and an answer of our own.

``filter_of`` gives the library a filter: a predicate over labels, or one over fields, or a function
that raises at some objects, or a predicate of changes. ``passes`` and ``shown`` answer the same of
what was written, and share no code with it.
"""

from __future__ import annotations

from collections.abc import Callable

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.selectors.predicates import changed, labelled, where
from aioinformer.testing.simulation.records import Write

__all__ = ["FilterBroke", "filter_of", "passes", "shown"]

_RAISES = 3
"""At objects whose value, divided by 7, leaves this a clumsy filter raises."""


class FilterBroke(Exception):
    """What a clumsy filter raises."""


def filter_of(
    passing: str, changes: str = "", raised: Callable[[], None] = lambda: None
) -> Filter | None:
    """What to give as ``filter=`` for ``passing``, an ``app=`` or ``node=`` or nothing, or for
    ``changes``. ``raised`` is called as it raises.
    """
    if changes:
        return changed("metadata.labels.app" if changes == "app" else "spec.nodeName")
    what, _, value = passing.rstrip("!").partition("=")
    if not what:
        return None
    question = labelled(f"app={value}") if what == "app" else where("spec.nodeName", value)
    if not passing.endswith("!"):
        return question

    def clumsy(obj: KubeObject) -> bool:
        if obj["spec"]["value"] % 7 == _RAISES:
            raised()
            raise FilterBroke(f"at {obj.key}")
        return question(obj)

    return clumsy


def passes(passing: str, write: Write) -> bool:
    """Whether the object that was written so is to be heard of."""
    what, _, value = passing.rstrip("!").partition("=")
    if passing.endswith("!") and write.value % 7 == _RAISES and not write.gone:
        return True
    return not what or value == (write.app if what == "app" else write.node)


def shown(changes: str, write: Write) -> str:
    """What a listener that hears of such ``changes`` alone knows of an object."""
    return write.app if changes == "app" else write.node
