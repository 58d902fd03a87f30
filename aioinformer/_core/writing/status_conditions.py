"""Entries of ``status.conditions``, changed by the rules of ``meta.SetStatusCondition``.

``metav1.Condition`` rejects an empty type and a reason that is no CamelCase word, so both are
checked here, where the mistake is made.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]

_STATUSES = ("True", "False", "Unknown")

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""The pattern of ``metav1.Condition.reason``."""

MAX_REASON = 1024
MAX_MESSAGE = 32768
"""Characters of ``metav1.Condition.reason`` and ``message`` that a server accepts."""


def format_time(moment: dt.datetime) -> str:
    """Return a time in the form of Kubernetes' ``metav1.Time``: ``2006-01-02T15:04:05Z``.

    Raises:
        ValueError: the time has no zone, so its moment is unknown.
    """
    if moment.tzinfo is None:
        raise ValueError(f"now must be a time with a zone, such as datetime.now(UTC), not {moment}")
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_condition(
    conditions: Sequence[Mapping[str, Any]] | None,
    condition_type: str,
    status: bool | ConditionStatus,
    *,
    reason: str,
    message: str,
    observed_generation: int | None,
    now: dt.datetime,
) -> list[dict[str, Any]]:
    """Return a new list of conditions in which one entry is set, as ``set_condition`` does."""
    entry = _make_entry(condition_type, status, reason, message, observed_generation)
    found = _copy_conditions(conditions)
    old = next((each for each in found if each.get("type") == condition_type), None)
    if old is None:
        found.append(entry | {"lastTransitionTime": format_time(now)})
        return found
    changes = old.get("status") != entry["status"] or not old.get("lastTransitionTime")
    if changes:
        entry["lastTransitionTime"] = format_time(now)
    if observed_generation is None:
        old.pop("observedGeneration", None)
    old.update(entry)
    return found


def _make_entry(
    condition_type: object,
    status: object,
    reason: object,
    message: object,
    observed_generation: object,
) -> dict[str, Any]:
    """Return the entry without its time. The caller may not be type-checked, so types count too."""
    if not isinstance(condition_type, str) or not condition_type:
        raise TypeError(f"set_condition needs the type of a condition, not {condition_type!r}")
    text = str(status) if isinstance(status, bool) else status
    if text not in _STATUSES:
        raise ValueError(
            f"the status of {condition_type} must be True, False or 'Unknown', not {status!r}"
        )
    if not isinstance(reason, str) or len(reason) > MAX_REASON or not _REASON.fullmatch(reason):
        raise ValueError(
            f"the reason of {condition_type} must be one word in CamelCase, such as "
            f"'MinimumReplicasAvailable', not {reason!r}: a server rejects other reasons"
        )
    if not isinstance(message, str):
        raise TypeError(f"the message of {condition_type} must be a string, not {message!r}")
    entry = {"type": condition_type, "status": text, "reason": reason}
    entry["message"] = message[:MAX_MESSAGE]
    return entry | _generation_entry(condition_type, observed_generation)


def _generation_entry(condition_type: str, generation: object) -> dict[str, Any]:
    if generation is None:
        return {}
    if isinstance(generation, bool) or not isinstance(generation, int) or generation < 0:
        raise ValueError(
            f"the observed_generation of {condition_type} must be metadata.generation, a number "
            f"from 0 on, not {generation!r}"
        )
    return {"observedGeneration": generation}


def _copy_conditions(conditions: object) -> list[dict[str, Any]]:
    """Return copies of the entries, which may be views of a cached object."""
    entries = [] if conditions is None else _entries(conditions)
    if entries is None or not all(isinstance(each, Mapping) for each in entries):
        raise TypeError(
            "conditions must be the list at status.conditions, or None, not "
            f"{type(conditions).__name__}"
        )
    found = cast("list[Mapping[str, object]]", entries)
    return [{name: _plain(value) for name, value in each.items()} for each in found]


def _entries(conditions: object) -> list[object] | None:
    """Return the entries of a list; ``None`` if it isn't one. The characters of a str are none."""
    is_list = isinstance(conditions, Sequence) and not isinstance(conditions, str)
    return list(cast("Sequence[object]", conditions)) if is_list else None


def _plain(value: object) -> object:
    """Return a value without read-only views; a condition holds texts and numbers otherwise."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in cast("Sequence[object]", value)]
    return msgspec.to_builtins(value)
