"""A broken promise: its number, with the object, the time and the evidence."""

from __future__ import annotations

from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.records import Record

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
        *evidence: object,
        time: float | None = None,
        key: ObjectKey | None = None,
    ) -> None:
        """Describe a violation.

        Args:
            promise: the number of the guarantee.
            what: the violation, in a sentence.
            *evidence: records that show the violation. ``None`` stands for no record.
            time: the virtual time of the violation; default: that of the last record.
            key: the object that is concerned.
        """
        shown = [each for each in evidence if each is not None]
        if time is None:
            time = max((each.time for each in shown if isinstance(each, Record)), default=0.0)
        about = f" of {key}" if key is not None else ""
        lines = "".join(f"\n    {each}" for each in shown)
        super().__init__(
            f"promise {promise} ({PROMISES[promise]}) was broken at {time:.6f} s{about}: "
            f"{what}{lines}"
        )
        self.promise = promise
        self.time = time
        self.key = key
