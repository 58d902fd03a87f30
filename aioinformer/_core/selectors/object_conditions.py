"""Conditions: tests of one object that may be absent, for ``wait_until`` and for listers.

A condition on the content of an object is undecided while the object doesn't exist. Undecided
counts as not fulfilled, and ``negate`` keeps it undecided, so that neither
``condition_true("Ready")`` nor ``negate(condition_true("Ready"))`` is fulfilled by an absent
object. ``exists`` and ``deleted`` are always decided.

The rules are those of ``kubectl wait`` and ``kubectl rollout status`` (1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, overload

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.quantities import quantity
from aioinformer._core.selectors.predicates import ObjectPredicate
from aioinformer._core.selectors.projections import fields
from aioinformer.errors.texts import one_line

_Test: TypeAlias = Callable[[KubeObject | None], bool | None]
_Explanation: TypeAlias = Callable[[KubeObject], str]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Condition(NeedsJson):
    """A test of one object, or of its absence.

    Conditions are passed to ``wait_until``, ``wait_until_all`` and ``lister.list(where=)``, and are
    combined by ``all_of``, ``any_of`` and ``negate``.
    """

    test: _Test
    """Returns True, False, or ``None`` for an undecided result. The argument is ``None`` for an
    object that doesn't exist."""
    text: str
    """The text of ``repr``, and of the timeout error of a wait."""
    reads_content: bool = True
    """False if the test reads nothing but the object's existence."""
    explanation: _Explanation | None = None

    @property
    def needs_bytes(self) -> bool:
        return self.reads_content

    def __call__(self, obj: KubeObject | None) -> bool:
        return self.test(obj) is True

    def explain(self, obj: KubeObject) -> str:
        """Return the state for which an object does not fulfil this condition, in one line, such as
        ``2 of 3 pods updated, 1 available``; empty if unknown.
        """
        if self.explanation is None:
            return ""
        try:
            return one_line(self.explanation(obj))
        except Exception:  # noqa: BLE001 - not the error to raise: a model has no JSON, for example
            return ""

    def __repr__(self) -> str:
        return self.text


class PresentCondition(Condition):
    """A condition that an absent object never fulfils, so that a wait returns an object."""

    __slots__ = ()


ConditionLike: TypeAlias = Condition | ObjectPredicate
"""A condition, or a predicate such as ``where(...)``, which is undecided for an absent object."""


def _content_condition(
    test: Callable[[KubeObject], bool], text: str, explanation: _Explanation | None = None
) -> PresentCondition:
    return PresentCondition(
        lambda obj: None if obj is None else test(obj), text, explanation=explanation
    )


def condition_true(condition_type: str) -> PresentCondition:
    """Return a condition for objects with that entry of ``status.conditions`` at ``"True"``.

    As for ``kubectl wait --for=condition=...``, an entry of an older generation doesn't count:
    neither if the entry's ``observedGeneration`` is lower than ``metadata.generation``, nor, for an
    entry without one, if the status has a lower one; and the type, such as ``"Ready"``, is compared
    without regard to case.

    Example:
        ``await pods.wait_until("web-0", condition_true("Ready"), timeout=60)``
    """
    if not isinstance(cast("object", condition_type), str) or not condition_type:
        raise TypeError(f"condition_true needs the type of a condition, not {condition_type!r}")
    return condition_status(condition_type, "True", f"condition_true({condition_type!r})")


def condition_status(condition_type: str, status: str, text: str) -> PresentCondition:
    """Return a condition like ``condition_true`` for another status, in whatever case."""
    return _content_condition(
        lambda obj: _has_condition(obj, condition_type, status),
        text,
        lambda obj: _explain_condition(obj, condition_type),
    )


exists = PresentCondition(lambda obj: obj is not None, "exists", reads_content=False)
"""Fulfilled by an object that exists."""

deleted = Condition(
    lambda obj: obj is None,
    "deleted",
    reads_content=False,
    explanation=lambda obj: _explain_deletion(obj),
)
"""Fulfilled by an object that doesn't exist. An object that was created again under the same name
exists; compare ``uid`` in a function of your own where the difference matters."""

job_complete = condition_status("Complete", "True", "job_complete")
"""Fulfilled by a Job that has succeeded. A Job that has failed never fulfils the condition: wait
for ``any_of(job_complete, condition_true("Failed"))``, and look at the returned object."""

crd_established = condition_status("Established", "True", "crd_established")
"""Fulfilled by a CustomResourceDefinition whose resource is served."""

rollout_complete = PresentCondition(
    lambda obj: None if obj is None else _is_rollout_complete(obj),
    "rollout_complete",
    explanation=lambda obj: _explain_rollout(obj),
)
"""Fulfilled by a Deployment, StatefulSet or DaemonSet whose desired state runs everywhere.

The rules are those of ``kubectl rollout status``. A Deployment that has exceeded its progress
deadline doesn't fulfil the condition, and neither does an object of any other kind. A StatefulSet
or DaemonSet with ``updateStrategy: OnDelete`` has no rollout, and never fulfils the condition."""


def negate(condition: ConditionLike) -> Condition:
    """Return a condition that is fulfilled by an object that doesn't fulfil ``condition``.

    An undecided result stays undecided: an absent object fulfils ``negate(exists)``, and does not
    fulfil ``negate(condition_true("Ready"))``.

    Raises:
        TypeError: ``condition`` is neither a condition nor a predicate of objects.
    """
    part = _condition_of(condition, "negate")
    test = part.test

    def negated(obj: KubeObject | None) -> bool | None:
        result = test(obj)
        return None if result is None else not result

    return Condition(negated, f"negate({condition!r})", explanation=part.explanation)


@overload
def all_of(*conditions: PresentCondition | ObjectPredicate) -> PresentCondition: ...
@overload
def all_of(*conditions: ConditionLike) -> Condition: ...
def all_of(*conditions: ConditionLike) -> Condition:
    """Return a condition that is fulfilled by an object that fulfils all of ``conditions``.

    Raises:
        TypeError: one of them is neither a condition nor a predicate of objects.
        ValueError: there is none.
    """
    return _combine("all_of", conditions, decisive=False)


@overload
def any_of(*conditions: PresentCondition | ObjectPredicate) -> PresentCondition: ...
@overload
def any_of(*conditions: ConditionLike) -> Condition: ...
def any_of(*conditions: ConditionLike) -> Condition:
    """Return a condition that is fulfilled by an object that fulfils one of ``conditions``.

    Raises as ``all_of``.
    """
    return _combine("any_of", conditions, decisive=True)


# -- combinations ------------------------------------------------------------------------------


def _condition_of(condition: object, user: str) -> Condition:
    if isinstance(condition, Condition):
        return condition
    if isinstance(condition, ObjectPredicate):
        return _content_condition(condition, repr(condition))
    raise TypeError(
        f"{user} combines conditions and predicates of objects, not {condition!r}; wrap a function "
        "as ObjectPredicate(f)"
    )


def _combine(name: str, conditions: tuple[object, ...], *, decisive: bool) -> Condition:
    """Return a condition that has the result ``decisive`` as soon as one of ``conditions`` has."""
    if not conditions:
        raise ValueError(f"{name}() has no condition")
    parts = [_condition_of(each, name) for each in conditions]

    def test(obj: KubeObject | None) -> bool | None:
        undecided = False
        for each in parts:
            result = each.test(obj)
            if result is decisive:
                return decisive
            undecided |= result is None
        return None if undecided else not decisive

    def explain(obj: KubeObject) -> str:
        texts = [each.explain(obj) for each in parts if not each(obj)]
        return "; ".join(dict.fromkeys(filter(None, texts)))

    present = [isinstance(each, PresentCondition) for each in parts]
    made = PresentCondition if all(present) else Condition
    return made(test, f"{name}({', '.join(map(repr, conditions))})", explanation=explain)


# -- kubectl's rules ---------------------------------------------------------------------------

_read_conditions = fields("status.conditions", "metadata.generation", "status.observedGeneration")


def _find_condition(obj: KubeObject, condition_type: str) -> tuple[Mapping[str, Any], bool]:
    """Return an entry of ``status.conditions``, and True if it is of the object's generation."""
    conditions, generation, status_generation = _read_conditions(obj)
    for each in _mappings(conditions):
        if str(each.get("type")).lower() == condition_type.lower():
            observed = each.get("observedGeneration", status_generation)
            # An API without generations decides by the status alone.
            return each, observed is None or _number(observed) >= _number(generation)
    return {}, True


def _has_condition(obj: KubeObject, condition_type: str, status: str) -> bool:
    found, current = _find_condition(obj, condition_type)
    return bool(found) and current and str(found.get("status")).lower() == status.lower()


_read_rollout = fields("metadata.generation", "spec", "status")


def _is_rollout_complete(obj: KubeObject) -> bool:
    rule = _ROLLOUT_RULES.get(obj.kind)
    if rule is None:
        return False
    generation, spec, status = _read_rollout(obj)
    found = _mapping(status)
    # The controller hasn't seen the newest desired state yet.
    if _number(generation) > _number(found.get("observedGeneration")):
        return False
    return rule(_mapping(spec), found)


def _is_deployment_complete(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    if any(map(_has_exceeded_deadline, _mappings(status.get("conditions")))):
        return False
    updated = _number(status.get("updatedReplicas"))
    return (
        updated >= _number(spec.get("replicas"), default=1)
        and _number(status.get("replicas")) <= updated
        and _number(status.get("availableReplicas")) >= updated
    )


def _has_exceeded_deadline(condition: Mapping[str, Any]) -> bool:
    expected = ("Progressing", "ProgressDeadlineExceeded")
    return (condition.get("type"), condition.get("reason")) == expected


def _is_stateful_set_complete(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    strategy = _mapping(spec.get("updateStrategy"))
    replicas = _number(spec.get("replicas"), default=1)
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return False
    if not status.get("observedGeneration") or _number(status.get("readyReplicas")) < replicas:
        return False
    partition = _number(_mapping(strategy.get("rollingUpdate")).get("partition"))
    if partition > 0:
        return _number(status.get("updatedReplicas")) >= replicas - partition
    return bool(status.get("updateRevision") == status.get("currentRevision"))


def _is_daemon_set_complete(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    strategy = _mapping(spec.get("updateStrategy"))
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return False
    desired = _number(status.get("desiredNumberScheduled"))
    return (
        _number(status.get("updatedNumberScheduled")) >= desired
        and _number(status.get("numberAvailable")) >= desired
    )


_ROLLOUT_RULES: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "Deployment": _is_deployment_complete,
    "StatefulSet": _is_stateful_set_complete,
    "DaemonSet": _is_daemon_set_complete,
}


# -- explanations ------------------------------------------------------------------------------


def _explain_condition(obj: KubeObject, condition_type: str) -> str:
    found, current = _find_condition(obj, condition_type)
    if not found:
        return f"the object has no condition {condition_type}"
    details = [str(found[name]) for name in ("reason", "message") if found.get(name)]
    if not current:
        details.append("of an older generation")
    status = f"condition {condition_type} is {found.get('status')}"
    return f"{status} ({', '.join(details)})" if details else status


_read_deletion = fields("metadata.deletionTimestamp", "metadata.finalizers")


def _explain_deletion(obj: KubeObject) -> str:
    requested, found = _read_deletion(obj)
    if not requested:
        return "no deletion was requested"
    if not found or not isinstance(found, Sequence) or isinstance(found, str):
        return "being deleted"
    names = ", ".join(map(str, cast("Sequence[object]", found)))
    return f"the deletion waits for the finalizers {names}"


def _explain_rollout(obj: KubeObject) -> str:
    generation, found_spec, found_status = _read_rollout(obj)
    spec, status = _mapping(found_spec), _mapping(found_status)
    if "desiredNumberScheduled" in status:  # a DaemonSet
        wanted = status["desiredNumberScheduled"]
        updated, available = status.get("updatedNumberScheduled"), status.get("numberAvailable")
    else:
        wanted = spec.get("replicas", 1)
        updated, available = status.get("updatedReplicas"), status.get("availableReplicas")
    text = f"{updated or 0} of {quantity(wanted, 'pod')} updated, {available or 0} available"
    if _number(generation) > _number(status.get("observedGeneration")):
        return f"{text}, and the newest change is not observed yet"
    deadline = any(map(_has_exceeded_deadline, _mappings(status.get("conditions"))))
    return f"{text}, and the progress deadline is exceeded" if deadline else text


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from map(_mapping, cast("Sequence[object]", value))


def _number(value: object, *, default: int = 0) -> int:
    """Return the value if it is an integer, else ``default``: zero values are left out in JSON."""
    return value if isinstance(value, int) else default
