"""The forms of a handler, and the arguments of its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from types import MethodType
from typing import Any, cast

import pytest

from aioinformer import Added, Deleted, DeleteReason, Event, Handler, KubeObject, Updated
from aioinformer._runtime.delivery.handlers import (
    METHODS,
    Method,
    compile_handler,
    compile_method,
    handler_name,
)
from tests.runtime.registrations import (
    A1,
    A2,
    LIFECYCLE_EVENTS,
    RecordingHandler,
    deliver_events,
    make_registration,
)


class OnlyAdds:
    def __init__(self) -> None:
        self.lines: list[KubeObject] = []

    async def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        self.lines.append(obj)


class OnlyUpdates:
    def __init__(self) -> None:
        self.lines: list[KubeObject] = []

    def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        self.lines.append(new)


class OnlyDeletions:
    def __init__(self) -> None:
        self.lines: list[KubeObject] = []

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        self.lines.append(obj)


async def test_an_object_s_methods_are_called_with_exactly_their_arguments() -> None:
    diary = RecordingHandler()

    await deliver_events(
        diary, Added(A1, initial=True), Updated(A1, A1, resync=True), Deleted(A1, "vanished")
    )

    assert diary.calls == [("add", A1, True), ("update", A1, A1, True), ("delete", A1, "vanished")]


@pytest.mark.client_go(128)
@pytest.mark.parametrize(
    ("handler", "lines"),
    [(OnlyAdds(), [A1]), (OnlyUpdates(), [A2]), (OnlyDeletions(), [A2])],
    ids=["add", "update", "delete"],
)
async def test_an_object_may_have_any_of_the_methods(
    handler: OnlyAdds | OnlyUpdates | OnlyDeletions, lines: list[KubeObject]
) -> None:
    it = await deliver_events(handler, *LIFECYCLE_EVENTS)

    assert handler.lines == lines
    assert it.statistics().delivered == 3
    assert it.statistics().errors == 0


async def test_a_function_is_called_with_each_event() -> None:
    seen: list[Event] = []

    await deliver_events(seen.append, *LIFECYCLE_EVENTS)

    assert seen == LIFECYCLE_EVENTS


async def test_a_coroutine_function_is_awaited_before_the_next_event() -> None:
    log: list[str] = []

    async def handler(event: Event) -> None:
        log.append(f"begin {type(event).__name__}")
        await asyncio.sleep(0)
        log.append(f"end {type(event).__name__}")

    await deliver_events(handler, *LIFECYCLE_EVENTS)

    assert log == [
        "begin Added",
        "end Added",
        "begin Updated",
        "end Updated",
        "begin Deleted",
        "end Deleted",
    ]


async def test_a_function_that_returns_an_awaitable_counts_as_asynchronous() -> None:
    done: list[Event] = []

    async def work(event: Event) -> None:
        done.append(event)

    await deliver_events(lambda event: work(event), *LIFECYCLE_EVENTS)

    assert done == LIFECYCLE_EVENTS


@pytest.mark.parametrize(
    "wrong", [None, 7, "on_add", object()], ids=lambda wrong: type(wrong).__name__
)
def test_an_object_that_is_not_a_handler_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="on_add, on_update or on_delete, or is a function"):
        make_registration(cast("Handler", wrong))


def _yields(event: Event) -> Iterator[None]:
    yield


async def _yields_later(event: Event) -> AsyncIterator[None]:
    yield


class _OnAddYields:
    def on_add(self, obj: KubeObject, *, initial: bool) -> Iterator[None]:
        yield


@pytest.mark.parametrize("wrong", [_yields, _yields_later, _OnAddYields(), partial(_yields)])
def test_a_generator_function_is_an_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="has a yield in it"):
        make_registration(cast("Handler", wrong))
    with pytest.raises(TypeError, match="has a yield in it"):
        compile_method("on_add", cast("Any", getattr(wrong, "on_add", wrong)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", [5, OnlyAdds], ids=repr)
def test_a_decorator_of_a_handler_accepts_only_functions(method: Method, wrong: object) -> None:
    with pytest.raises(TypeError, match="this is for a function, not for"):
        compile_method(method, cast("Any", wrong))


async def test_functions_for_one_kind_of_event_receive_no_other() -> None:
    diary = RecordingHandler()

    for handler in (
        compile_method("on_add", diary.on_add),
        compile_method("on_update", diary.on_update),
        compile_method("on_delete", diary.on_delete),
    ):
        await deliver_events(handler, *LIFECYCLE_EVENTS)

    assert diary.calls == [("add", A1, False), ("update", A1, A2, False), ("delete", A2, "deleted")]


@pytest.mark.client_go(126)
def test_a_handler_is_named_after_its_function_or_class() -> None:
    def inner(event: Event) -> None: ...

    assert handler_name(RecordingHandler()) == "RecordingHandler"
    assert handler_name(RecordingHandler().on_add) == "RecordingHandler.on_add"
    assert compile_method("on_add", RecordingHandler().on_add).name == "RecordingHandler.on_add"
    assert handler_name(partial(inner)) == "partial"
    assert handler_name(inner) == "test_a_handler_is_named_after_its_function_or_class.inner"


def test_a_class_instead_of_its_instance_is_a_type_error() -> None:
    class Audit:
        def on_add(self, obj: KubeObject, *, initial: bool) -> None: ...

    with pytest.raises(TypeError, match=r"pass Audit\(\), not the class"):
        make_registration(cast("Handler", Audit))


def test_the_coroutine_of_a_call_instead_of_the_function_is_a_type_error() -> None:
    async def audit(event: Event) -> None: ...

    with pytest.raises(TypeError, match=r"a function: pass .*\.audit, not .*\.audit\(\.\.\.\)$"):
        compile_handler(cast("Handler", audit(Added(A1))))  # and closed: pytest would warn
    with pytest.raises(TypeError, match="NoneType is neither: pass the function, not the result"):
        compile_handler(cast("Handler", None))


def test_a_handler_is_async_if_any_of_its_functions_is() -> None:
    async def function(event: Event) -> None: ...

    class Callable:
        async def __call__(self, event: Event) -> None: ...

    for handler in (RecordingHandler(), OnlyAdds(), function, partial(function), Callable()):
        assert compile_handler(cast("Handler", handler)).is_async
    assert not compile_handler(OnlyUpdates()).is_async
    assert not compile_handler(print).is_async
    assert not compile_handler(lambda event: function(event)).is_async


class _WantsMore:
    def on_add(self, obj: KubeObject, *, initial: bool) -> None: ...

    def on_delete(self, obj: KubeObject) -> None: ...


class _Slip:
    def on_add(self, obj: KubeObject, *, initial: bool) -> None: ...

    def on_updated(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (_WantsMore(), r"^_WantsMore.on_delete\(.*called as \(obj, reason=...\): .*'reason'"),
        (_Slip(), "^_Slip has on_updated, which is never called: rename it if on_update is meant"),
        (lambda: None, r"lambda>\(\) is to be called as \(event\): too many"),
    ],
)
def test_a_handler_with_other_arguments_is_an_error_when_it_is_added(
    wrong: object, said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        make_registration(cast("Handler", wrong))


def test_further_methods_are_allowed() -> None:
    class Both(RecordingHandler):
        def on_updated(self) -> None: ...

        def on_error(self) -> None: ...

    make_registration(Both())


@pytest.mark.parametrize("method", METHODS)
def test_a_decorated_function_must_take_the_arguments_of_its_method(method: Method) -> None:
    def of_an_event(event: Event) -> None: ...

    with pytest.raises(TypeError, match="is to be called as"):
        compile_method(method, of_an_event)


class CountedEvents:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: Event) -> None:
        self.count += 1


async def test_a_callable_object_is_called_by_the_method_of_its_class() -> None:
    counted = CountedEvents()
    vars(counted)["__call__"] = print  # ignored: Python looks in the class alone

    compiled = compile_handler(counted)
    compiled.call(Added(A1))

    assert isinstance(compiled.call, MethodType)
    assert (compiled.name, counted.count) == ("CountedEvents", 1)


@pytest.mark.parametrize("function", [print, partial(print, end=""), list[Event]().append])
def test_a_plain_function_is_called_without_a_wrapper(function: Any) -> None:
    assert compile_handler(function).call is function
