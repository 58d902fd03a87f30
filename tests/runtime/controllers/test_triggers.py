"""From an event to the keys that it concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, KubeObject, ObjectKey, Priority, Reason, Updated
from aioinformer._runtime.controllers.triggers import (
    DeletionHandler,
    ObjectTrigger,
    ToKeys,
    Trigger,
    check_to_keys,
)
from tests.runtime.scripted_source import pod

OLD, NEW = pod("a", 1), pod("a", 2)


@dataclass(slots=True)
class Asked:
    """A record of the requested keys."""

    keys: list[str] = field(default_factory=list[str])
    why: list[tuple[str, Priority]] = field(default_factory=list[tuple[str, Priority]])
    failures: list[Exception] = field(default_factory=list[Exception])

    def __call__(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        self.keys.append(str(key))
        self.why.append((str(reason), priority))


def trigger(asked: Asked, to_keys: ToKeys) -> Trigger:
    return Trigger("pods", asked, to_keys, parse_key=parsed, on_error=asked.failures.append)


def parsed(key: ObjectKey | str) -> ObjectKey:
    return key if isinstance(key, ObjectKey) else ObjectKey.parse(key)


def by_version(obj: KubeObject) -> Iterable[str]:
    yield f"web/v{obj.resource_version}"
    yield "web/both"


@pytest.mark.parametrize(
    ("event", "why", "priority"),
    [
        (Added(OLD), "added in pods", Priority.NORMAL),
        (Added(OLD, initial=True), "initial in pods", Priority.LOW),
        (Updated(OLD, NEW), "updated in pods", Priority.NORMAL),
        (Updated(NEW, NEW, resync=True), "resync in pods", Priority.LOW),
        (Deleted(NEW), "deleted in pods", Priority.NORMAL),
    ],
)
def test_an_event_requests_its_key_with_a_reason_and_a_priority(
    event: Event, why: str, priority: Priority
) -> None:
    asked = Asked()
    ObjectTrigger("pods", asked)(event)
    assert (asked.keys, asked.why) == (["web/a"], [(why, priority)])


def test_a_handler_of_deletions_passes_their_keys_alone() -> None:
    keys: list[ObjectKey] = []
    handler = DeletionHandler(keys.append)
    for event in (Added(OLD), Updated(OLD, NEW), Deleted(NEW)):
        handler(event)
    assert keys == [NEW.key]
    assert repr(handler).startswith("<DeletionHandler of <built-in method append")


def test_an_update_requests_each_key_of_its_new_and_old_state_once() -> None:
    asked = Asked()
    trigger(asked, by_version)(Updated(OLD, NEW))
    assert asked.keys == ["web/v2", "web/both", "web/v1"]


def test_a_resync_calls_to_keys_once() -> None:
    asked = Asked()
    trigger(asked, by_version)(Updated(NEW, NEW, resync=True))
    assert asked.keys == ["web/v2", "web/both"]


@pytest.mark.parametrize(("broken", "left"), [(OLD, "web/v2"), (NEW, "web/v1")])
def test_an_exception_for_one_state_of_an_update_keeps_the_keys_of_the_other(
    broken: KubeObject, left: str
) -> None:
    asked = Asked()

    def to_keys(obj: KubeObject) -> list[str]:
        if obj is broken:
            raise KeyError("no")
        return [f"web/v{obj.resource_version}"]

    with pytest.raises(KeyError):
        trigger(asked, to_keys)(Updated(OLD, NEW))
    assert asked.keys == [left]
    assert len(asked.failures) == 1


@pytest.mark.parametrize("given", [None, "web/a", 5, [5], ["a/b/c"]])
def test_a_result_that_is_not_a_list_of_keys_is_an_error(given: Any) -> None:
    asked = Asked()

    def to_keys(obj: KubeObject) -> Any:
        return given

    with pytest.raises((TypeError, ValueError, AttributeError)):
        trigger(asked, to_keys)(Added(OLD))
    assert asked.keys == []


async def later(obj: KubeObject) -> list[str]:
    return [obj.name]


@pytest.mark.parametrize("given", [None, 5, KubeObject, later])
def test_to_keys_is_a_plain_function(given: object) -> None:
    with pytest.raises(TypeError):
        check_to_keys(given)


def test_the_repr_of_a_trigger_names_its_resource_and_function() -> None:
    asked = Asked()
    assert repr(ObjectTrigger("pods", asked)) == "<ObjectTrigger of pods>"
    assert "Trigger of pods: <function by_version" in repr(trigger(asked, by_version))
