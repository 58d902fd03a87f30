"""Which objects a filtered listener hears of: the question, and an answer of our own.

``filter_of`` gives the library a filter, half of them a predicate over labels, half of them one
over fields. ``passes`` answers the same of what was written, and shares no code with it.
"""

from __future__ import annotations

from aioinformer._core.filtering import Filter
from aioinformer._core.predicates import labelled, where
from aioinformer.testing.simulation.records import Write

__all__ = ["filter_of", "passes"]


def filter_of(passing: str) -> Filter | None:
    """What to give as ``filter=`` for ``passing``, an ``app=`` or ``node=`` or nothing."""
    what, _, value = passing.partition("=")
    if not what:
        return None
    return labelled(passing) if what == "app" else where("spec.nodeName", value)


def passes(passing: str, write: Write) -> bool:
    """Whether the object that was written so is to be heard of."""
    what, _, value = passing.partition("=")
    return not what or value == (write.app if what == "app" else write.node)
