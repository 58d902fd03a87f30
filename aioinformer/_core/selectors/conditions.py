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
from typing import Any, TypeAlias, cast

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.selectors.predicates import ObjectPredicate
from aioinformer._core.selectors.projections import fields

_Test: TypeAlias = Callable[[KubeObject | None], bool | None]


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

    @property
    def needs_bytes(self) -> bool:
        return self.reads_content

    def __call__(self, obj: KubeObject | None) -> bool:
        return self.test(obj) is True

    def __repr__(self) -> str:
        return self.text


ConditionLike: TypeAlias = Condition | ObjectPredicate
"""A condition, or a predicate such as ``where(...)``, which is undecided for an absent object."""


def condition_true(condition_type: str) -> Condition:
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

    return _content_condition(
        lambda obj: _is_condition_true(obj, condition_type), f"condition_true({condition_type!r})"
    )


exists = Condition(lambda obj: obj is not None, "exists", reads_content=False)
"""Fulfilled by an object that exists."""

deleted = Condition(lambda obj: obj is None, "deleted", reads_content=False)
"""Fulfilled by an object that doesn't exist. An object that was created again under the same name
exists; compare ``uid`` in a function of your own where the difference matters."""

job_complete = Condition(
    lambda obj: None if obj is None else _is_condition_true(obj, "Complete"), "job_complete"
)
"""Fulfilled by a Job that has succeeded. A Job that has failed never fulfils the condition: wait
for ``any_of(job_complete, condition_true("Failed"))``, and look at the returned object."""

crd_established = Condition(
    lambda obj: None if obj is None else _is_condition_true(obj, "Established"), "crd_established"
)
"""Fulfilled by a CustomResourceDefinition whose resource is served."""

rollout_complete = Condition(
    lambda obj: None if obj is None else _is_rollout_complete(obj), "rollout_complete"
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
    test = _test_of(condition, "negate")

    def negated(obj: KubeObject | None) -> bool | None:
        result = test(obj)
        return None if result is None else not result

    return Condition(negated, f"negate({condition!r})")


def all_of(*conditions: ConditionLike) -> Condition:
    """Return a condition that is fulfilled by an object that fulfils all of ``conditions``.

    Raises:
        TypeError: one of them is neither a condition nor a predicate of objects.
        ValueError: there is none.
    """
    return _combine("all_of", conditions, decisive=False)


def any_of(*conditions: ConditionLike) -> Condition:
    """Return a condition that is fulfilled by an object that fulfils one of ``conditions``.

    Raises as ``all_of``.
    """
    return _combine("any_of", conditions, decisive=True)


# -- combinations ------------------------------------------------------------------------------


def _content_condition(test: Callable[[KubeObject], bool], text: str) -> Condition:
    return Condition(lambda obj: None if obj is None else test(obj), text)


def _test_of(condition: object, user: str) -> _Test:
    if isinstance(condition, Condition):
        return condition.test
    if isinstance(condition, ObjectPredicate):
        return _content_condition(condition, repr(condition)).test
    raise TypeError(
        f"{user} combines conditions and predicates of objects, not {condition!r}; wrap a function "
        "as ObjectPredicate(f)"
    )


def _combine(name: str, conditions: tuple[object, ...], *, decisive: bool) -> Condition:
    """Return a condition that has the result ``decisive`` as soon as one of ``conditions`` has."""
    if not conditions:
        raise ValueError(f"{name}() has no condition")
    tests = [_test_of(each, name) for each in conditions]

    def test(obj: KubeObject | None) -> bool | None:
        undecided = False
        for each in tests:
            result = each(obj)
            if result is decisive:
                return decisive
            undecided |= result is None
        return None if undecided else not decisive

    return Condition(test, f"{name}({', '.join(map(repr, conditions))})")


# -- kubectl's rules ---------------------------------------------------------------------------

_read_conditions = fields("status.conditions", "metadata.generation", "status.observedGeneration")


def _is_condition_true(obj: KubeObject, condition_type: str) -> bool:
    conditions, generation, status_generation = _read_conditions(obj)
    for each in _mappings(conditions):
        if str(each.get("type")).lower() == condition_type.lower():
            observed = each.get("observedGeneration", status_generation)
            # An API without generations decides by the status alone.
            current = observed is None or _number(observed) >= _number(generation)
            return current and str(each.get("status")).lower() == "true"
    return False


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
    for each in _mappings(status.get("conditions")):
        if each.get("type") == "Progressing" and each.get("reason") == "ProgressDeadlineExceeded":
            return False
    updated = _number(status.get("updatedReplicas"))
    return (
        updated >= _number(spec.get("replicas"), default=1)
        and _number(status.get("replicas")) <= updated
        and _number(status.get("availableReplicas")) >= updated
    )


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


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from map(_mapping, cast("Sequence[object]", value))


def _number(value: object, *, default: int = 0) -> int:
    """Return the value if it is an integer, else ``default``: zero values are left out in JSON."""
    return value if isinstance(value, int) else default
