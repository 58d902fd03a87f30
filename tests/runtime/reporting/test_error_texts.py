"""Texts of exceptions, whose ``__str__`` may be a program's."""

from __future__ import annotations

from aioinformer._runtime.reporting.error_texts import describe_error, error_text


class SilentError(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")


def test_an_exception_is_described_by_its_class_and_text() -> None:
    assert describe_error(ValueError("no number")) == "ValueError: no number"
    assert error_text(ValueError("no number")) == "no number"


def test_an_exception_whose_text_raises_is_described_all_the_same() -> None:
    assert error_text(SilentError()) == "<its __str__ raised LookupError>"
    assert describe_error(SilentError()) == "SilentError: <its __str__ raised LookupError>"
