"""Copies of errors: the same classes, texts and causes, and no frame."""

from __future__ import annotations

from typing import cast

from aioinformer._core.objects.decode_errors import iter_related
from aioinformer._runtime.reporting.error_copy import copy_error
from aioinformer.errors import NotFound, Status, server_error


class NumberedError(Exception):
    """An error of a program, whose constructor has other arguments than its ``args``."""

    def __init__(self, number: int, *, place: str) -> None:
        super().__init__(f"number {number} in {place}")
        self.number = number


class TextlessError(Exception):
    """An error that shows another text each time, so that no copy is known to be complete."""

    texts = 0

    def __str__(self) -> str:
        TextlessError.texts += 1
        return f"text {TextlessError.texts}"


def raised(error: Exception, cause: BaseException | None = None) -> Exception:
    """Return ``error`` with a traceback, and with the traceback of a context."""
    try:
        try:
            raise KeyError("the context")
        except KeyError:
            raise error from cause
    except Exception as caught:  # noqa: BLE001 - the errors of the tests
        return caught


def members(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions of a group."""
    assert isinstance(error, BaseExceptionGroup)
    return cast("BaseExceptionGroup[BaseException]", error).exceptions


def test_a_copy_has_the_class_the_text_and_the_attributes_and_no_traceback() -> None:
    error = raised(NumberedError(7, place="web"))

    copied = copy_error(error)

    assert copied is not error
    assert isinstance(copied, NumberedError)
    assert (str(copied), copied.number) == ("number 7 in web", 7)
    assert [each.__traceback__ for each in iter_related(copied)] == [None]
    assert copied.__context__ is None
    assert error.__traceback__ is not None  # the program that catches the error reads it


def test_an_error_of_a_server_keeps_its_status_in_the_copy() -> None:
    copied = copy_error(raised(server_error(Status(404, "NotFound", "no such pod"))))

    assert isinstance(copied, NotFound)
    assert copied.status.message == "no such pod"


def test_the_causes_of_an_error_are_copied_with_it() -> None:
    innermost = raised(ValueError("the number"))
    error = raised(RuntimeError("the request"), raised(OSError("the socket"), innermost))

    related = [*iter_related(copy_error(error))]

    assert [repr(each) for each in related] == [
        "RuntimeError('the request')",
        "OSError('the socket')",
        "ValueError('the number')",
    ]
    assert all(each.__traceback__ is None for each in related)


def test_an_error_that_is_its_own_cause_is_copied_without_an_endless_loop() -> None:
    error = raised(ValueError("a circle"))
    error.__cause__ = error

    copied = copy_error(error)

    assert copied is not error
    assert (str(copied), copied.__cause__) == ("a circle", None)


def test_a_copy_hides_its_context_if_the_error_has_hidden_its_own() -> None:
    hidden, shown = raised(ValueError("from None")), raised(ValueError("while another one"))
    shown.__suppress_context__ = False

    assert copy_error(hidden).__suppress_context__
    assert not copy_error(shown).__suppress_context__


def test_an_error_without_a_traceback_is_not_copied() -> None:
    error = ValueError("never raised")
    error.__cause__ = KeyError("never raised either")

    assert copy_error(error) is error


def test_an_error_without_a_traceback_is_copied_if_its_cause_has_one() -> None:
    error = ValueError("never raised")
    error.__cause__ = raised(KeyError("raised"))

    copied = copy_error(error)

    assert copied is not error
    assert copied.__cause__ is not None
    assert copied.__cause__.__traceback__ is None


def test_an_error_whose_copy_would_have_another_text_stays_itself() -> None:
    error = raised(TextlessError())

    assert copy_error(error) is error


def test_a_group_is_copied_with_copies_of_its_exceptions_which_have_no_tracebacks() -> None:
    inner = ExceptionGroup("inner", [raised(KeyError("two"), raised(OSError("the socket")))])
    group = raised(ExceptionGroup("outer", [raised(ValueError("one")), raised(inner)]))

    copied = copy_error(group)

    assert type(copied) is ExceptionGroup
    assert str(copied) == "outer (2 sub-exceptions)"
    one, found = members(copied)
    (two,) = members(found)
    assert two.__cause__ is not None
    assert [repr(each) for each in (one, two, two.__cause__)] == [
        "ValueError('one')",
        "KeyError('two')",
        "OSError('the socket')",
    ]
    errors: list[BaseException] = [copied, one, found, two, two.__cause__]
    assert [each.__traceback__ for each in errors] == [None] * 5


def test_an_exception_whose_cause_is_its_own_group_is_copied_without_an_endless_loop() -> None:
    member = raised(ValueError("a member"))
    group = raised(ExceptionGroup("both", [member]))
    member.__cause__ = group

    for error in (member, group):
        assert copy_error(error).__traceback__ is None
