"""An index by label, which the lister's label selectors find by themselves.

``indexers={"labels": label_index("app")}``: from then on ``lister.list(labels="app=shop")`` looks
at the objects with that label, and not at all of them. How a selector makes use of it is
``query``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from aioinformer._core.items import ReadsBytes
from aioinformer._core.objects import KubeObject

__all__ = ["LabelIndex", "label_index"]

CACHED = 256
"""Label indexes that are kept. It matters that the same keys are the same function: two parts of
a program may ask for one informer with the same index."""


@dataclass(frozen=True, slots=True)
class LabelIndex(ReadsBytes):
    """An index function: files an object under ``key=value`` of its labels."""

    keys: tuple[str, ...] = ()
    """Which labels; none for all."""

    def __call__(self, obj: KubeObject) -> tuple[str, ...]:
        """The values of ``obj``.

        Raises:
            ObjectDecodeError: the labels can't be read.
        """
        labels = obj.labels
        return tuple(self.value(key, labels[key]) for key in self.keys or labels if key in labels)

    def covers(self, key: str) -> bool:
        """Whether objects are filed by this label."""
        return not self.keys or key in self.keys

    @staticmethod
    def value(key: str, value: str) -> str:
        """Under what an object with this label is filed."""
        return f"{key}={value}"

    def __repr__(self) -> str:
        return f"label_index({', '.join(map(repr, self.keys))})"


def label_index(*keys: str) -> LabelIndex:
    """An index function by labels. Selectors with ``=``, ``==`` or ``in`` are then fast.

    Args:
        keys: which labels. None means all of them: good for many selectors, but each label of
            each object costs about 100 bytes, and each change the reading of the old labels too.
    """
    return _label_index(tuple(sorted(set(keys))))


@lru_cache(maxsize=CACHED)
def _label_index(keys: tuple[str, ...]) -> LabelIndex:
    return LabelIndex(keys)
