"""``set_condition``: ``merge_condition`` with the time of the system clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from aioinformer._core.writing.status_conditions import ConditionStatus, merge_condition


def set_condition(
    conditions: Sequence[Mapping[str, Any]] | None,
    condition_type: str,
    status: bool | ConditionStatus,
    *,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: dt.datetime | None = None,
) -> list[dict[str, Any]]:
    """Return ``status.conditions`` with one entry set, as apimachinery's ``SetStatusCondition``.

    ``lastTransitionTime`` is the time of the last change of the entry's status: a call that changes
    reason or message alone keeps the time. So equal calls have equal results, and a controller that
    writes only changes doesn't write in every run. Other entries and their order stay.

    Args:
        conditions: the entries so far, which may be those of a cached object; ``None`` for none.
        condition_type: the entry's ``type``, such as ``"Ready"``.
        status: ``True``, ``False`` or ``"Unknown"``; the entry has it as a text.
        reason: one word in CamelCase, for programs.
        message: a sentence for people, cut after 32768 characters, the most that a server accepts.
        observed_generation: the ``metadata.generation`` that the entry describes; ``None`` to leave
            it out. ``condition_true`` doesn't count an entry of an older generation.
        now: the time of a change, with a zone; by default that of the system clock.

    Raises:
        TypeError: ``conditions`` is no list of mappings, or a text is no string.
        ValueError: ``status``, ``reason`` or ``observed_generation`` is out of range, or ``now``
            has no zone.

    Example::

        from aioinformer.conditions import set_condition

        conditions = [{"type": "Ready", "status": "False", "reason": "Starting"}]
        ready = set_condition(
            conditions, "Ready", True, reason="Available", observed_generation=2
        )
        assert (ready[0]["status"], ready[0]["observedGeneration"]) == ("True", 2)
    """
    return merge_condition(
        conditions,
        condition_type,
        status,
        reason=reason,
        message=message,
        observed_generation=observed_generation,
        now=dt.datetime.now(dt.UTC) if now is None else now,
    )
