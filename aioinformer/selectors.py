"""Types of indexes, filters and merged streams, for annotations.

Functions of ``aioinformer`` return these objects: ``field``, ``labelled``, ``where``, ``merge``...

Example::

    from aioinformer.selectors import (
        ChangePredicate, CombinedPredicate, EventSource, Field, Fields, LabelIndex, MergedStream,
        ObjectPredicate, Predicate, Sourced,
    )

    shop: ObjectPredicate = labelled("app=shop")
    new_spec: ChangePredicate = changed("spec")
    both: CombinedPredicate = shop & new_spec
    chosen: Predicate = both
    pods.add_handler(print, filter=chosen)

    node: Field = field("spec.nodeName")
    parts: Fields = fields("metadata.name", "spec.nodeName")
    pod = pods.lister.get("web-0")
    assert (node(pod), parts(pod)) == ("node-1", ("web-0", "node-1"))

    by_label: LabelIndex = label_index("app")
    await pods.add_index("label", by_label)
    assert len(pods.lister.by_index("label", "app=shop")) == 2

    merged: MergedStream = merge(pods.events(), deployments.events())
    async with merge(pods.events(), deployments.events()) as events:
        async for each in events:
            one: Sourced = each
            source: EventSource = one.source
            assert source.name.split()[0] in ("pods", "deployments.apps")
            break
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
