"""Functions that take what they will be given, and those that don't."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest

from aioinformer._core.callables import check_not_async, check_signature, is_async


def fits(obj: object, *, initial: bool) -> None: ...
def fits_by_any_name(thing: object, /, initial: bool = False, **more: object) -> None: ...
def needs_more(obj: object, other: object, *, initial: bool) -> None: ...
def knows_no_keyword(obj: object) -> None: ...
def takes_no_object(*, initial: bool) -> None: ...


class Audit:
    def method(self, obj: object, *, initial: bool) -> None: ...

    def __call__(self, obj: object, *, initial: bool) -> None: ...


def injecting(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        function(*args, object(), **kwargs)

    return wrapper


def described(function: Any) -> Any:
    function.__signature__ = None
    return function


@pytest.mark.parametrize(
    "function",
    [
        fits,
        fits_by_any_name,
        Audit(),
        Audit().method,
        partial(needs_more, object()),
        injecting(needs_more),
        described(lambda: None),
        dict[str, object].update,
        None,
    ],
)
def test_a_signature_that_fits_or_is_unknown_passes(function: object) -> None:
    check_signature(function, "it", "obj", initial=bool)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (needs_more, r"^it\(.*other.*\) .* called as \(obj, initial=...\): missing .* 'other'$"),
        (knows_no_keyword, r"got an unexpected keyword argument 'initial'$"),
        (takes_no_object, "too many positional arguments"),
        (partial(fits, object()), "too many positional arguments"),
    ],
)
def test_the_error_shows_the_signature_of_a_function_that_does_not_fit(
    function: object, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        check_signature(function, "it", "obj", initial=bool)


def test_an_async_function_in_a_synchronous_place_is_an_error() -> None:
    async def later(obj: object) -> str:
        return ""

    class Later:
        async def __call__(self, obj: object) -> str:
            return ""

    check_not_async(fits, "it")
    for function in (later, Later()):
        with pytest.raises(TypeError, match="it is async; it must answer at once"):
            check_not_async(function, "it")


def test_a_plain_function_that_returns_a_coroutine_is_not_async() -> None:
    async def later() -> None: ...

    assert is_async(later)
    assert not is_async(lambda: later())
    assert not is_async(int)


def test_the_error_shows_both_signatures() -> None:
    def takes_two(first: int, second: int) -> None: ...

    with pytest.raises(TypeError) as caught:
        check_signature(takes_two, "the handler f", "obj", initial=bool)
    assert str(caught.value) == (
        "the handler f(first: 'int', second: 'int') -> 'None' is to be called as "
        "(obj, initial=...): missing a required argument: 'second'"
    )
    assert caught.value.__suppress_context__
