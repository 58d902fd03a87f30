"""What the server held of one selection, at each resourceVersion: the oracle.

Worked out from the log of writes alone, with a selector of its own, so that it shares no code with
what it judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aioinformer._core.objects import ObjectKey
from aioinformer.testing.simulation.history import Sample, State, Version, Write
from aioinformer.testing.simulation.plan import InformerSpec

__all__ = ["Truth"]


class Truth:
    """The states of one selection."""

    def __init__(self, writes: Sequence[Write], spec: InformerSpec) -> None:
        """Work out what ``spec`` selects of everything that was written."""
        self.stored: dict[tuple[ObjectKey, Version], Write] = {}
        """Every state that was ever selected."""
        self.exits: dict[tuple[ObjectKey, str], list[Write]] = {}
        """Where an object, by key and uid, went or left the selection."""
        self._changes: list[tuple[int, ObjectKey, Version | None]] = []
        self.final: dict[ObjectKey, Version] = {}
        """What is selected at the end."""
        for write in writes:
            if spec.namespace in (None, write.key.namespace):
                self._follow(write, selected=not write.gone and spec.app in ("", write.app))

    def _follow(self, write: Write, *, selected: bool) -> None:
        before = self.final.pop(write.key, None)
        if selected:
            version = Version(write.uid, write.version)
            self.final[write.key] = version
            self.stored[write.key, version] = write
            self._changes.append((write.version, write.key, version))
        elif before is not None:
            self.exits.setdefault((write.key, before.uid), []).append(write)
            self._changes.append((write.version, write.key, None))

    def beside(self, samples: Iterable[Sample]) -> Iterator[tuple[Sample, State]]:
        """Each sample, and the state at its version, by version. Good until the next one."""
        state: dict[ObjectKey, Version] = {}
        changes = iter(self._changes)
        change = next(changes, None)
        for sample in sorted(samples, key=lambda sample: int(sample.version)):
            while change is not None and change[0] <= int(sample.version):
                _, key, version = change
                if version is None:
                    del state[key]
                else:
                    state[key] = version
                change = next(changes, None)
            yield sample, state

    def left(self, key: ObjectKey, uid: str, *, after: int, before: float = float("inf")) -> bool:
        """Whether an object went after a version; ``before`` is the number of a record."""
        exits = self.exits.get((key, uid), ())
        return any(each.version > after and each.order < before for each in exits)

    def __repr__(self) -> str:
        return f"<Truth changes={len(self._changes)} final={len(self.final)}>"
