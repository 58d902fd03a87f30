"""Label selectors: their canonical form, and matching.

One is written as text (``label_text``) or as a mapping (``label_mappings``); either way it is a
set of ``requirements``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aioinformer._core.selectors.label_mappings import LabelMapping, requirements_in_mapping
from aioinformer._core.selectors.label_text import requirements_in_text
from aioinformer._core.selectors.requirements import LabelRequirement

__all__ = ["LabelSelector"]


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions on labels that must all hold; none of them selects everything.

    Two selectors are equal iff their canonical forms are: ``a==b``, ``a in (b)`` and ``{"a": "b"}``
    are one selector, and the order of conditions doesn't count.
    """

    requirements: tuple[LabelRequirement, ...] = ()

    @classmethod
    def parse(cls, selector: str | LabelMapping | None) -> LabelSelector:
        """The selector that a text or a mapping means.

        Args:
            selector: ``app=web,tier in (a, b),!canary`` and so on; or labels with the value that
                each must have, or a list of values; or what objects carry, with ``matchLabels``
                and ``matchExpressions``. ``None`` and what is empty select everything.

        Raises:
            InvalidSelector: it doesn't parse, or a key or value can't be a label's. The message
                is the server's sentence, then the text with the place marked.
            TypeError: something in the mapping is of another type.
        """
        if isinstance(selector, str):
            found = requirements_in_text(selector)
        else:
            found = requirements_in_mapping(selector or {})
        return cls(tuple(sorted(set(found))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))
