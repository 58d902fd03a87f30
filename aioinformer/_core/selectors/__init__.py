"""Label and field selectors: parse, render, match.

An informer's selectors are checked before the first request, rendered in one canonical form (so
that two spellings of one selector share an informer), and matched here by listers and by the test
server. The two grammars have nothing in common but their purpose.

    labels          ``LabelSelector``
    label_text      labels.Parser's grammar: ``app=web,tier in (a,b),!canary``
    label_mappings  ``{"app": "web"}``, and ``matchLabels`` and ``matchExpressions``
    requirements    one condition on a label, and what labels may be
    fields          ``FieldSelector``: ``spec.nodeName=node-1,status.phase!=Running``
    faults          how a text that doesn't parse is reported
"""

from __future__ import annotations

from aioinformer._core.selectors.fields import FieldRequirement as FieldRequirement
from aioinformer._core.selectors.fields import FieldSelector as FieldSelector
from aioinformer._core.selectors.fields import FieldValues as FieldValues
from aioinformer._core.selectors.label_mappings import LabelMapping as LabelMapping
from aioinformer._core.selectors.labels import LabelSelector as LabelSelector
from aioinformer._core.selectors.requirements import LabelOperator as LabelOperator
from aioinformer._core.selectors.requirements import LabelRequirement as LabelRequirement

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "FieldValues",
    "LabelMapping",
    "LabelOperator",
    "LabelRequirement",
    "LabelSelector",
]
