"""A stored state is continued by the transform that has made it, and by no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from aioinformer import CacheFile, KubeObject, SharedInformerFactory
from aioinformer.metrics import Metrics
from aioinformer.testing import Cluster, ClusterSource
from tests.cachefile.programs import INTERVAL

Transform: TypeAlias = Callable[[KubeObject], Any]
Case: TypeAlias = tuple[str, Transform | None, Transform | None, bool]
"""What differs between two runs, the transform of each, and whether the state is continued."""

SECRET = "hunter2"


def compiled(expression: str) -> Transform:
    """Return a function that is compiled from its text, as in another version of a program."""
    names: dict[str, Any] = {"__name__": "program"}
    exec(f"def transform(obj):\n    return obj if {expression} else None", names)  # noqa: S102
    transform: Transform = names["transform"]
    return transform


def keep_all(obj: KubeObject) -> KubeObject:
    return obj


def drop_some(obj: KubeObject) -> KubeObject | None:
    return obj if obj.name in {"a", "b", "c"} else None


def keep(name: str, obj: KubeObject, *, again: object = None) -> KubeObject | None:
    return obj if obj.name == name else None


def drop(name: str, obj: KubeObject) -> KubeObject | None:
    return None if obj.name == name else obj


def captured(value: object, default: object = None, keyword: object = None) -> Transform:
    def transform(obj: KubeObject, given: object = default, *, named: object = keyword) -> Any:
        return obj if all((value, given, named)) else None

    return transform


def decorated(function: Transform) -> Transform:
    @wraps(function)
    def logged(obj: KubeObject) -> Any:
        return function(obj)

    return logged


def recursive(depth: int) -> Transform:
    def transform(obj: KubeObject) -> Any:
        return transform(obj) if depth < len(obj.name) else obj

    return transform


def captured_later(*, assigned: bool) -> Transform:
    def transform(obj: KubeObject) -> Any:
        return obj if later else None

    if assigned:
        later = "a"
    return transform


class Selection:
    """A part of a program with settings."""

    def __init__(self, value: object, other: object = None) -> None:
        self.value = value
        self.other = other

    def transform(self, obj: KubeObject) -> KubeObject | None:
        return obj if self.value else None

    def __call__(self, obj: KubeObject) -> KubeObject | None:
        return obj if self.value else None

    @classmethod
    def create(cls, obj: KubeObject) -> KubeObject:
        return obj


class SlottedSelection(Selection):
    __slots__ = ("__hidden", "unset")

    def __init__(self, value: object) -> None:
        self.__hidden = value

    def transform(self, obj: KubeObject) -> KubeObject | None:
        return obj if self.__hidden else None


class StructSelection(msgspec.Struct):
    value: Any

    def transform(self, obj: KubeObject) -> KubeObject | None:
        return obj if self.value else None


def holder_of_its_method(value: str) -> Transform:
    selection = Selection(value)
    selection.other = selection.transform
    return selection.transform


MAKERS: dict[str, Callable[[Any], Transform]] = {
    "method": lambda value: Selection(value).transform,
    "method with slots": lambda value: SlottedSelection(value).transform,
    "method of a struct": lambda value: StructSelection(value).transform,
    "callable object": Selection,
    "partial method": lambda value: partial(Selection(value)),
    "captured object": lambda value: captured(Selection(value)),
    "captured value": captured,
    "default value": partial(captured, 0),
    "default of a keyword": partial(captured, 0, 0),
    "argument of a partial": lambda value: partial(keep, "a", again=value),
}
"""Transforms with one setting."""

SETTINGS: Sequence[tuple[object, object]] = [
    ("a", "b"),
    (1, 2),
    ({"a": 1}, {"a": 2}),
    ({"a", "b"}, {"a", "c"}),
    (keep_all, drop_some),
]

CODE = {
    "a constant": ("len(obj.name) > 1", "len(obj.name) > 2"),
    "an attribute": ("obj.name", "obj.namespace"),
    "a set": ("obj.name in {'a', 'b'}", "obj.name in {'a', 'c'}"),
    "an inner function": ("(lambda y: y > 1)(obj)", "(lambda y: y > 2)(obj)"),
}


def cases() -> Iterator[Case]:
    yield "nothing", keep_all, keep_all, True
    yield "the function", keep_all, drop_some, False
    yield "that there is one", None, keep_all, False
    yield "the order of a set", compiled("obj in {0, 8}"), compiled("obj in {8, 0}"), True
    for what, (old, new) in CODE.items():
        yield f"not {what}", compiled(old), compiled(old), True
        yield what, compiled(old), compiled(new), False
        yield f"{what}, decorated", decorated(compiled(old)), decorated(compiled(new)), False
    yield "not the decorated function", decorated(keep_all), decorated(keep_all), True
    for kind, make in MAKERS.items():
        for one, other in SETTINGS:
            yield f"not {one} of a {kind}", make(one), make(one), True
            yield f"{one} of a {kind}", make(one), make(other), False
    for kind, make in list(MAKERS.items())[:-1]:
        # The text of these objects differs in each process.
        yield f"an object of a {kind}", make(object()), make(object()), True
    for value in ([object()], {"a": object()}):
        yield f"a captured {type(value).__name__}", captured(object()), captured(value), True
    yield "names", Selection("a", "b").transform, Selection("b", "a").transform, False
    yield "not a held method", holder_of_its_method("a"), holder_of_its_method("a"), True
    yield "a held method", holder_of_its_method("a"), holder_of_its_method("b"), False
    yield "not a class method", Selection.create, SlottedSelection.create, True
    yield "not a secret argument", partial(keep, SECRET), partial(keep, SECRET), True
    yield "an argument", partial(keep, SECRET), partial(keep, "b"), False
    yield "the function of a partial", partial(keep, SECRET), partial(drop, SECRET), False
    yield "a keyword", partial(keep, SECRET), partial(keep, SECRET, again=1), False
    yield "not a recursion", recursive(1), recursive(1), True
    yield "a recursion", recursive(1), recursive(2), False
    yield "a value", captured_later(assigned=False), captured_later(assigned=True), False
    yield "not a function in C", itemgetter("a"), itemgetter("a"), True
    yield "a function in C", len, itemgetter("a"), False


class FirstVerbs(Metrics):
    """The first request of each informer, by its namespace."""

    def __init__(self) -> None:
        self.verbs: dict[str, str] = {}

    def request_started(self, informer: str, verb: str) -> None:
        self.verbs.setdefault(informer.split()[2], verb)


async def run(path: Path, cluster: Cluster, transforms: Sequence[Transform | None]) -> list[bool]:
    """Run an informer for each transform; return which of them have continued a stored state."""
    cache, first = CacheFile(path, interval=INTERVAL), FirstVerbs()
    async with SharedInformerFactory(ClusterSource(cluster), cache=cache, metrics=first) as factory:
        for number, transform in enumerate(transforms):
            factory.informer("pods", namespace=f"n{number}", transform=transform)
        await factory.wait_synced(timeout=30)
    return [first.verbs[f"n{each}"] == "freshness_check" for each in range(len(transforms))]


async def test_a_state_is_continued_only_by_the_transform_that_has_made_it(tmp_path: Path) -> None:
    names, first, second, same = zip(*cases(), strict=True)
    path, cluster = tmp_path / "cache.db", Cluster()
    assert not any(await run(path, cluster, first))
    found = await run(path, cluster, second)
    assert dict(zip(names, found, strict=True)) == dict(zip(names, same, strict=True))
    assert len(set(names)) == len(names)
    assert SECRET.encode() not in path.read_bytes(), "arguments may be secret"
