"""The texts of errors of the calling program."""

from __future__ import annotations

import pytest

from aioinformer.errors import (
    AmbiguousResource,
    IndexFailed,
    InvalidSelector,
    NotComparable,
    PathMismatch,
    UnknownResource,
    UnwatchableResource,
    UsageError,
)
from tests.core.builders import PODS, key


def test_a_version_that_is_no_number_is_shown_up_to_its_fortieth_character() -> None:
    assert "resourceVersion 'abc' is" in str(NotComparable("abc"))
    assert f"'{40 * 'x'}'" in str(NotComparable(40 * "x"))
    assert f"'{40 * 'x'}...'" in str(NotComparable(41 * "x"))
    assert NotComparable(41 * "x").version == 41 * "x"


def test_the_error_of_an_index_names_the_index_and_the_object() -> None:
    known = IndexFailed("node", PODS, key("a"), KeyError("spec"))
    new = IndexFailed("node", PODS, key("a"), KeyError("spec"), new=True)

    assert str(known) == ("the function of the index 'node' raised at pods web/a: KeyError: 'spec'")
    assert str(new).startswith("the index 'node' was not added: its function raised at pods web/a")
    assert (known.index, known.key) == ("node", "web/a")


def test_an_error_carries_what_a_program_needs_for_its_next_call() -> None:
    assert AmbiguousResource("two", candidates=("a.x", "a.y")).candidates == ("a.x", "a.y")
    assert UnwatchableResource("no", lacks=("watch",)).lacks == ("watch",)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InvalidSelector, ValueError),
        (PathMismatch, TypeError),
        (UnknownResource, LookupError),
        (NotComparable, ValueError),
    ],
)
def test_an_error_is_caught_as_the_builtin_exception_that_a_program_expects(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, UsageError)
