"""The condition that shows in an object's status if its last reconcile has failed.

The write of a condition is a change of the object, and so triggers a run. Two rules prevent a loop:
nothing is sent if nothing changes, and a message alone is written again after ``MESSAGE_INTERVAL``
only, since the text of an error may differ each time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from aioinformer._core.listwatch.availability import CONFIRMATION_INTERVAL
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.status_conditions import ConditionStatus
from aioinformer._runtime.reporting.error_texts import lasting_text
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.errors import (
    CleanupFailed,
    Conflict,
    InformerError,
    NotCached,
    NotFound,
    PermanentError,
)
from aioinformer.errors.texts import one_line

log = logging.getLogger("aioinformer.controller")

MESSAGE_INTERVAL = 60.0
"""Seconds after which a message alone is written again."""
MAX_MESSAGE = 1024
"""Characters of a message: enough for a server's error, and little in each list of the objects."""

ATTEMPTS = 2
"""Requests for one condition, if the answer is 404 and the object exists."""

SUCCESS_REASON = "ReconcileSucceeded"

_TYPE = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
"""The pattern of ``metav1.Condition.type``."""


def check_condition_type(name: object) -> None:
    """Raise a ``TypeError`` or ``ValueError`` unless this is the type of a condition."""
    if not isinstance(name, str):
        raise TypeError(f"failure_condition must be a type such as 'Reconciled', not {name!r}")
    if not _TYPE.fullmatch(name):
        raise ValueError(
            f"failure_condition must be a word such as 'Reconciled', with or without a domain and "
            f"a slash, not {name!r}"
        )


class ConditionWriter(Protocol):
    """The object of one run, and the writes of its status."""

    @property
    def key(self) -> ObjectKey:
        """The key that was reconciled."""
        ...

    async def newest(self) -> KubeObject | None:
        """Return the object with its status; ``None`` if there is none."""
        ...

    @property
    def own_writer(self) -> ResourceWriter:
        """Reads and writes objects of the reconciled resource."""
        ...

    async def set_condition(
        self,
        condition_type: str,
        status: bool | ConditionStatus,
        *,
        reason: str,
        message: str,
        fields: Mapping[str, Any] | None = None,
    ) -> KubeObject:
        """Set a condition; send nothing if nothing changes."""
        ...


class FailureCondition:
    """Writes one condition for each run of a controller."""

    def __init__(self, condition_type: str, *, controller: str, finalizer: bool) -> None:
        self._type = condition_type
        self._controller = controller
        self._finalizer = finalizer
        self._written_at: dict[ObjectKey, float] = {}
        """The times of the last writes for the keys that fail."""
        self._missing_since: float | None = None
        """The time of the first 404 for the status of an object that exists; ``None`` after a write
        that has succeeded."""
        self._supported = True

    async def show_success(self, run: ConditionWriter, now: float) -> None:
        """Set the condition to True, unless the object is absent or being deleted."""
        self._written_at.pop(run.key, None)
        obj = await run.newest()
        if obj is not None and obj.deletion_timestamp is None:
            await self._write(run, obj, now, status=True, reason=SUCCESS_REASON)

    async def show_failure(self, run: ConditionWriter, error: Exception, now: float) -> None:
        """Set the condition to False, with reason and message, at a monotonic time ``now``."""
        obj = await run.newest()
        if obj is None:
            self._written_at.pop(run.key, None)
            return
        reason = self._reason_of(error, obj)
        last = self._written_at.get(run.key)
        recent = last is not None and now - last < MESSAGE_INTERVAL
        if recent and self._shows(obj, reason):
            return
        message = _message_of(error)
        if await self._write(run, obj, now, status=False, reason=reason, message=message):
            self._written_at[run.key] = now

    def forget(self, key: ObjectKey) -> None:
        """Forget a key: its object is deleted, or belongs to another member of a group."""
        self._written_at.pop(key, None)

    def _reason_of(self, error: Exception, obj: KubeObject) -> str:
        if self._finalizer and obj.deletion_timestamp is not None:
            return "CleanupFailed"
        return "PermanentError" if isinstance(error, PermanentError) else "ReconcileFailed"

    def _shows(self, obj: KubeObject, reason: str) -> bool:
        """Return True if the cached condition has this reason for the present generation."""
        found = _find_condition(obj, self._type)
        generation = obj["metadata"].get("generation")
        return (found.get("status"), found.get("reason"), found.get("observedGeneration")) == (
            "False",
            reason,
            generation,
        )

    async def _write(
        self,
        run: ConditionWriter,
        obj: KubeObject,
        now: float,
        *,
        status: bool,
        reason: str,
        message: str = "",
    ) -> bool:
        """Write the condition. Return False if there is nothing to write to."""
        if not self._supported:
            return False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await run.set_condition(self._type, status, reason=reason, message=message)
            except NotCached:
                return False  # the object was deleted meanwhile
            except NotFound:
                if not await _still_exists(run, obj):
                    return False
                if attempt == ATTEMPTS:
                    self._record_missing(run.own_writer.resource, now)
            except Conflict:
                # Another program has written since the cache was read. Its write is an event, which
                # leads to a run that decides by the newer object.
                log.debug(
                    "controller %s: %s: its condition is written later", self._controller, run.key
                )
                return False
            else:
                self._missing_since = None
                return True
        return False

    def _record_missing(self, resource: Resource, now: float) -> None:
        """Note a 404 for the status of an object that exists. Write no more conditions after two of
        them with ``CONFIRMATION_INTERVAL`` and no success in between: a proxy answers 404 as well.
        """
        if self._missing_since is None:
            self._missing_since = now
            log.warning(
                "controller %s: the server answers 404 for the status of %s, so the condition %s "
                "is not written: does the resource have a status subresource?",
                *(self._controller, resource, self._type),
            )
        self._supported = now - self._missing_since < CONFIRMATION_INTERVAL

    def __repr__(self) -> str:
        return (
            f"<FailureCondition {self._type} of {self._controller} written={len(self._written_at)}>"
        )


async def _still_exists(run: ConditionWriter, obj: KubeObject) -> bool:
    try:
        return (await run.own_writer.get(run.key)).uid == obj.uid
    except NotFound:
        return False


def _message_of(error: Exception) -> str:
    """Return the text of an error for all who may read the object: only that of an error of this
    library or of a ``PermanentError``, since others may quote a password.
    """
    if isinstance(error, CleanupFailed) and error.__cause__ is not None:
        error = cast("Exception", error.__cause__)
    if isinstance(error, InformerError):
        return one_line(lasting_text(error), MAX_MESSAGE)
    return f"{type(error).__name__}: the log of the controller has the text of this error"


def _find_condition(obj: KubeObject, condition_type: str) -> Mapping[str, Any]:
    """Return the entry of a type; an empty mapping if there is none."""
    status: object = obj.get("status")
    found: object = None
    if isinstance(status, Mapping):
        found = cast("Mapping[str, object]", status).get("conditions")
    if isinstance(found, Sequence) and not isinstance(found, str):
        for each in cast("Sequence[object]", found):
            if isinstance(each, Mapping) and cast("Any", each).get("type") == condition_type:
                return cast("Mapping[str, Any]", each)
    return {}
