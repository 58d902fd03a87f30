"""Errors of decoding, without the input that they quote."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from aioinformer import Resource
from aioinformer._core.objects.decode_errors import (
    discard_input,
    hide_secret,
    iter_related,
)
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ModelMismatch, UsageError


class _Typed(msgspec.Struct, forbid_unknown_fields=True):
    kind: str = ""
    count: int = 0
    at: bytes = b""


def caught(function: Callable[[], object]) -> Exception:
    """Return the error that the function raises."""
    with pytest.raises(Exception) as found:  # noqa: PT011
        function()
    return found.value


def decode(data: bytes) -> Exception:
    return caught(lambda: msgspec.json.decode(data, type=_Typed))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"hunter2":1}', "Object contains unknown field (not shown)"),
        (b'{"count":"hunter2"}', "Expected `int`, got `str` - at `$.count`"),
        (b'{"count":"hunter2', "Input data was truncated"),
    ],
)
def test_a_message_keeps_the_types_and_the_path_but_not_the_input(data: bytes, text: str) -> None:
    error = discard_input(decode(data))

    assert str(error) == text
    assert error.__traceback__ is None


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Invalid value 'x' - at `$.kind`", "Invalid value (not shown) - at `$.kind`"),
        ("Invalid value 'x'", "Invalid value (not shown)"),
        ('Invalid value "it\'s\nx"', "Invalid value (not shown)"),
        ("Invalid enum value `a` - at `$.kind`", "Invalid enum value (not shown) - at `$.kind`"),
        ("Invalid enum value 'a'", "Invalid enum value (not shown)"),
        ("Object contains unknown field `a`", "Object contains unknown field (not shown)"),
        ("Expected `int`, got `str`", "Expected `int`, got `str`"),
    ],
)
def test_a_message_that_quotes_the_input_quotes_nothing_afterwards(message: str, left: str) -> None:
    error = discard_input(msgspec.ValidationError(message, 7))

    assert error.args == (left, "")


def test_an_error_of_encoding_keeps_the_position_and_the_reason() -> None:
    error = caught(lambda: b"hunter2\xff".decode())
    discard_input(error)

    assert isinstance(error, UnicodeDecodeError)
    assert error.args == ("utf-8", b"", 7, 8, "invalid start byte")
    assert (error.object, error.start, error.end) == (b"", 7, 8)


def test_an_error_of_a_text_keeps_nothing_of_the_text() -> None:
    error = discard_input(caught(lambda: "hunter2\ud800".encode()))

    assert error.args == ("a text that can't be converted",)


def test_another_error_keeps_its_arguments() -> None:
    assert discard_input(ValueError("Invalid value 'x'", 7)).args == ("Invalid value 'x'", 7)


def test_each_related_error_is_found_once_and_loses_its_input() -> None:
    cause, context = msgspec.DecodeError("Invalid value 'a'"), decode(b'{"hunter2":1}')
    error = ValueError("broken")
    error.__cause__, error.__context__ = cause, context
    context.__context__ = error

    assert {id(each) for each in iter_related(error)} == {id(error), id(cause), id(context)}
    assert len(list(iter_related(error))) == 3
    discard_input(error)
    assert [each.__traceback__ for each in (error, cause, context)] == [None] * 3
    assert str(cause) == "Invalid value (not shown)"
    assert str(context) == "Object contains unknown field (not shown)"


# -- functions of the program at a Secret -------------------------------------------------------

SECRETS = find_built_in("secrets")
ERROR = ValueError("invalid literal for int() with base 10: 'hunter2'")


def test_an_exception_at_a_secret_is_replaced_by_one_that_names_its_class_alone() -> None:
    found = hide_secret(SECRETS, ERROR)

    assert type(found) is UsageError
    assert str(found) == ("a ValueError was raised; its text may quote the Secret and is not shown")
    assert (found.__cause__, found.__context__, found.__traceback__) == (None, None, None)


@pytest.mark.parametrize(
    "resource",
    [find_built_in("configmaps"), Resource("vault.example.com", "v1", "secrets", "Secret")],
    ids=["another kind", "another group"],
)
def test_an_exception_at_another_object_stays(resource: Resource) -> None:
    assert hide_secret(resource, ERROR) is ERROR


def test_an_error_of_this_library_that_names_the_secret_stays() -> None:
    error = ModelMismatch("secrets web/a: no Login", key="web/a", resource_version="1")
    assert hide_secret(SECRETS, error) is error
