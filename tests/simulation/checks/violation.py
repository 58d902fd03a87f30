"""A broken promise: its number, with the object, the time and the evidence."""

from __future__ import annotations

from collections.abc import Sequence

from aioinformer._core.objects.kube_object import ObjectKey

PROMISES = {
    1: "convergence",
    2: "order",
    3: "the cache leads and is a true past state",
    4: "atomic relist",
    5: "late listeners",
    6: "synced",
    7: "isolation",
    8: "bounded memory",
    9: "liveness",
    10: "nothing is silent",
    11: "polite",
}
"""The guarantees that a history without sockets can show, by number."""


class Violation(AssertionError):
    """A guarantee that a history breaks."""

    def __init__(
        self,
        promise: int,
        what: str,
        *,
        time: float,
        key: ObjectKey | None = None,
        evidence: Sequence[object] = (),
    ) -> None:
        """Describe a violation.

        Args:
            promise: the number of the guarantee.
            what: the violation, in a sentence.
            time: the virtual time of the violation.
            key: the object that is concerned.
            evidence: records that show the violation.
        """
        about = f" of {key}" if key is not None else ""
        shown = "".join(f"\n    {each}" for each in evidence)
        super().__init__(
            f"promise {promise} ({PROMISES[promise]}) was broken at {time:.6f} s{about}: "
            f"{what}{shown}"
        )
        self.promise = promise
        self.time = time
        self.key = key
