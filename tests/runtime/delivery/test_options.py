"""The options of one listener, which are checked where the program gives them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer._runtime.delivery.options import HandlerOptions, ListenerOptions


def test_the_defaults_are_accepted() -> None:
    options = HandlerOptions()

    assert (options.concurrency, options.timeout, options.resync) == (1, None, None)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"limit": "4"}, TypeError, "limit"),
        ({"resync": -1}, ValueError, "resync"),
    ],
)
def test_an_option_of_a_listener_that_makes_no_sense_is_rejected(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    for make in (ListenerOptions, HandlerOptions):
        with pytest.raises(error, match=text):
            make(**options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"concurrency": 1.5}, TypeError, "concurrency"),
        ({"concurrency": 0}, ValueError, "concurrency must be at least 1, not 0"),
        ({"timeout": 0}, ValueError, "timeout"),
    ],
)
def test_an_option_of_a_handler_that_makes_no_sense_is_rejected(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        HandlerOptions(**options)
