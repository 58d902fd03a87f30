"""A broken promise: which one, of what, when, and how one can tell."""

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
"""The clauses of the design's section 6 that a history without sockets can show."""


class Violation(AssertionError):
    """What happened is not what was promised."""

    def __init__(
        self,
        promise: int,
        what: str,
        *,
        time: float,
        key: ObjectKey | None = None,
        evidence: Sequence[object] = (),
    ) -> None:
        """Describe it.

        Args:
            promise: the number of the clause.
            what: what is wrong, in a sentence.
            time: when, in virtual seconds.
            key: of which object.
            evidence: records that show it.
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
