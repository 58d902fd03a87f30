"""Types of indexes, filters and merged streams, for annotations.

A program makes the objects with functions of ``aioinformer``: ``field``, ``fields``,
``label_index``, ``labelled``, ``where``, ``changed``, ``labels_changed``,
``annotations_changed``, ``generation_changed`` and ``merge``.
"""

from aioinformer._core.cache.indexes import LabelIndex
from aioinformer._core.selectors.predicates import (
    ChangePredicate,
    CombinedPredicate,
    ObjectPredicate,
    Predicate,
)
from aioinformer._core.selectors.projections import Field, Fields
from aioinformer._runtime.delivery.streams import EventSource, MergedStream, Sourced

__all__ = [
    "ChangePredicate",
    "CombinedPredicate",
    "EventSource",
    "Field",
    "Fields",
    "LabelIndex",
    "MergedStream",
    "ObjectPredicate",
    "Predicate",
    "Sourced",
]
