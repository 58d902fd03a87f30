"""The identities of stored states."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial, wraps
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec
import pytest

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.cachefile.state.identity import describe_function, scope_identity
from tests.core.builders import NODES, PODS


@pytest.mark.parametrize(
    ("stored", "found", "same"),
    [
        (("u1", "e1"), ("u1", "e2"), True),
        (("u1", "e1"), ("u2", "e1"), False),
        (("u1", "e1"), ("", "e1"), True),
        (("", "e1"), ("u1", "e2"), False),
        (("", ""), ("", ""), False),
    ],
)
def test_the_uid_decides_if_both_are_known_and_the_endpoint_otherwise(
    stored: tuple[str, str], found: tuple[str, str], same: bool
) -> None:
    assert ClusterIdentity(*stored).matches(ClusterIdentity(*found)) is same


Transform: TypeAlias = Callable[[KubeObject], KubeObject | None]


def keep_all(obj: KubeObject) -> KubeObject:
    return obj


def drop_some(obj: KubeObject) -> KubeObject | None:
    return obj if obj.name in {"a", "b", "c"} else None


def test_the_resource_the_selection_and_the_transform_are_parts_of_a_scopes_identity() -> None:
    identities = {
        scope_identity(PODS, {}, None),
        scope_identity(NODES, {}, None),
        scope_identity(PODS, {"namespace": "web"}, None),
        scope_identity(PODS, {}, keep_all),
        scope_identity(PODS, {}, drop_some),
    }
    assert len(identities) == 5
    assert scope_identity(PODS, {"a": "1", "b": "2"}, keep_all) == scope_identity(
        PODS, {"b": "2", "a": "1"}, keep_all
    )


def test_a_function_is_described_alike_in_each_process() -> None:
    code = (
        "from aioinformer.cachefile.state.identity import describe_function\n"
        "from tests.cachefile.state.test_identity import drop_some\n"
        "print(describe_function(drop_some))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    }
    assert shown == {describe_function(drop_some)}


def test_another_code_of_a_function_makes_another_description() -> None:
    texts: list[str] = []
    for limit in (1, 2):
        names: dict[str, object] = {"__name__": "program"}
        exec(f"def transform(obj):\n    return obj if len(obj.name) > {limit} else None", names)  # noqa: S102
        function = names["transform"]
        assert callable(function)
        texts.append(describe_function(function))
    assert texts[0] != texts[1]
    assert texts[0].startswith("program.transform:")


def test_an_object_that_is_callable_is_described_by_its_class() -> None:
    class Transform:
        def __call__(self, obj: KubeObject) -> KubeObject:
            return obj

    assert "Transform" in describe_function(Transform())


class Service:
    """A part of a program with a method that changes objects."""

    def transform(self, obj: KubeObject) -> KubeObject:
        return obj


def test_a_method_is_described_by_its_code_whatever_its_instance() -> None:
    described = describe_function(Service().transform)
    assert (
        described == describe_function(Service().transform) == describe_function(Service.transform)
    )
    assert described.startswith("tests.cachefile.state.test_identity.Service.transform:")


class Selection:
    """A part of a program with settings."""

    def __init__(self, value: object, other: object = None) -> None:
        self.value = value
        self.other = other

    def transform(self, obj: KubeObject) -> KubeObject | None:
        return obj if self.value else None

    def __call__(self, obj: KubeObject) -> KubeObject | None:
        return obj if self.value else None


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


MAKE: dict[str, Callable[[object], Transform]] = {
    "method": lambda value: Selection(value).transform,
    "method with slots": lambda value: SlottedSelection(value).transform,
    "method of a struct": lambda value: StructSelection(value).transform,
    "callable": Selection,
    "partial": lambda value: partial(Selection(value)),
    "captured": lambda value: make_transform(Selection(value)),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_the_settings_of_an_object_are_part_of_the_description_of_its_method(
    make: Callable[[object], Transform],
) -> None:
    def describe(value: object) -> str:
        return describe_function(make(value))

    for one, other in (("a", "b"), (1, 2), ({"a": 1}, {"a": 2}), (keep_all, drop_some)):
        assert describe(one) == describe(one)
        assert describe(one) != describe(other)
    assert "hunter2" not in describe("hunter2")
    assert describe(object()) == describe(object()), "its text differs in each process"


def test_the_name_of_a_setting_counts() -> None:
    one, other = Selection("a", "b"), Selection("b", "a")
    assert describe_function(one.transform) != describe_function(other.transform)


def test_a_method_of_an_object_that_holds_the_method_can_be_described() -> None:
    def create(value: str) -> Selection:
        selection = Selection(value)
        selection.other = selection.transform
        return selection

    one, other = create("a"), create("b")
    assert describe_function(one.transform) == describe_function(create("a").transform)
    assert describe_function(one.transform) != describe_function(other.transform)


def nested(limit: int) -> str:
    names: dict[str, object] = {"__name__": "program"}
    exec(f"def transform(obj):\n    return [x for x in obj if (lambda y: y > {limit})(x)]", names)  # noqa: S102
    function = names["transform"]
    assert callable(function)
    return describe_function(function)


def test_the_code_inside_a_function_is_part_of_its_description() -> None:
    assert nested(1) == nested(1)
    assert nested(1) != nested(2)


def test_another_name_in_the_code_makes_another_description() -> None:
    texts: set[str] = set()
    for name in ("name", "namespace"):
        names: dict[str, object] = {"__name__": "program"}
        exec(f"def transform(obj):\n    return obj.{name}", names)  # noqa: S102
        function = names["transform"]
        assert callable(function)
        texts.add(describe_function(function))
    assert len(texts) == 2


def test_the_identity_of_a_scope_is_sorted_json() -> None:
    assert scope_identity(PODS, {"namespace": "web"}, None) == (
        '{"namespace":"web","resource":"v1/pods","transform":""}'
    )


def test_a_callable_object_is_described_by_module_and_name() -> None:
    assert describe_function(len) == "builtins.builtin_function_or_method:builtins.len"
    assert describe_function(str.upper) == "builtins.method_descriptor:.str.upper"
    assert describe_function(itemgetter("a")) == "operator.itemgetter:operator."


def test_another_set_in_the_code_makes_another_description() -> None:
    texts: set[str] = set()
    for members in ("{'a', 'b'}", "{'a', 'c'}"):
        names: dict[str, object] = {"__name__": "program"}
        exec(f"def transform(obj):\n    return obj if obj.name in {members} else None", names)  # noqa: S102
        function = names["transform"]
        assert callable(function)
        texts.add(describe_function(function))
    assert len(texts) == 2


def keep(name: str, obj: KubeObject, *, again: object = None) -> KubeObject | None:
    return obj if obj.name == name else None


def drop(name: str, obj: KubeObject) -> KubeObject | None:
    return None if obj.name == name else obj


def test_a_partial_function_is_described_by_its_function_and_its_arguments() -> None:
    described = describe_function(partial(keep, "hunter2"))

    assert described == describe_function(partial(keep, "hunter2"))
    assert described not in {
        describe_function(partial(keep, "b")),
        describe_function(partial(drop, "hunter2")),
        describe_function(partial(keep, "hunter2", again=1)),
        describe_function(keep),
    }
    assert "hunter2" not in described
    first, second = (describe_function(partial(keep, "a", again=each)) for each in (keep, drop))
    assert first != second
    assert first == describe_function(partial(keep, "a", again=keep))
    assert "test_identity.keep:" in described


def test_a_function_among_the_arguments_is_described_by_its_code() -> None:
    def create() -> Callable[[KubeObject], KubeObject]:
        def created(obj: KubeObject) -> KubeObject:
            return obj

        return created

    one, other = create(), create()
    assert one is not other
    first, second = (describe_function(partial(keep, "a", again=each)) for each in (one, other))
    assert first == second
    assert first != describe_function(partial(keep, "a", again=keep))


def make_transform(captured: object, default: object = None, keyword: object = None) -> Transform:
    def transform(obj: KubeObject, given: object = default, *, named: object = keyword) -> Any:
        return obj if all((captured, given, named)) else None

    return transform


@pytest.mark.parametrize("place", range(3))
def test_captured_and_default_values_are_part_of_the_description(place: int) -> None:
    def describe(value: object) -> str:
        return describe_function(make_transform(*[value if at == place else 0 for at in range(3)]))

    for one, other in (("a", "b"), (1, 2), ({"a": 1}, {"a": 2}), ({"a", "b"}, {"a", "c"})):
        assert describe(one) == describe(one)
        assert describe(one) != describe(other)
    assert describe(keep_all) == describe(keep_all)
    assert describe(keep_all) != describe(drop_some)
    assert "hunter2" not in describe("hunter2")


def test_captured_objects_without_a_stable_text_do_not_count() -> None:
    described = describe_function(make_transform(object()))

    assert described == describe_function(make_transform(object()))
    assert described == describe_function(make_transform([object()]))
    assert described == describe_function(make_transform({"a": object()}))


def test_a_decorated_function_is_described_by_its_own_code() -> None:
    def log(function: Transform) -> Transform:
        @wraps(function)
        def logged(obj: KubeObject) -> KubeObject | None:
            return function(obj)

        return logged

    def create(limit: str) -> Transform:
        names: dict[str, Any] = {"__name__": "program"}
        exec(f"def transform(obj):\n    return obj if obj.name == {limit!r} else None", names)  # noqa: S102
        return log(names["transform"])

    assert describe_function(create("a")) == describe_function(create("a"))
    assert describe_function(create("a")) != describe_function(create("b"))


def test_a_function_that_refers_to_itself_can_be_described() -> None:
    def create(depth: int) -> Transform:
        def transform(obj: KubeObject) -> KubeObject | None:
            return transform(obj) if depth < len(obj.name) else obj

        return transform

    assert describe_function(create(1)) == describe_function(create(1))
    assert describe_function(create(1)) != describe_function(create(2))


def test_a_captured_variable_without_a_value_does_not_count() -> None:
    def transform(obj: KubeObject) -> KubeObject | None:
        return obj if later else None

    before = describe_function(transform)
    later = "a"
    assert before != describe_function(transform)
