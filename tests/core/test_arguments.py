"""Checks of keywords and of seconds."""

from __future__ import annotations

import pytest

from aioinformer._core.arguments import check_names, check_seconds, suggest_keywords


@suggest_keywords
def add(number: int, *, factor: int = 1) -> int:
    """Multiply."""
    return number * factor


def test_a_decorated_function_works_and_keeps_its_documentation() -> None:
    assert add(2, factor=3) == add(number=2, factor=3) == 6
    assert (add.__name__, add.__doc__) == ("add", "Multiply.")


def test_a_misspelt_keyword_is_corrected() -> None:
    wrong: dict[str, int] = {"facter": 3}
    unlike: dict[str, int] = {"x": 3}
    with pytest.raises(TypeError, match=r"add\(\) has no argument 'facter'; did you mean 'factor'"):
        add(2, **wrong)
    with pytest.raises(TypeError, match=r"add\(\) has no argument 'x'$"):
        add(2, **unlike)


def test_only_names_of_options_pass_and_all_names_are_suggested() -> None:
    check_names(["resync"], ["resync", "page_size"])
    with pytest.raises(TypeError, match="no option 'resinc'; did you mean 'resync'"):
        check_names(["resync", "resinc"], ["resync", "page_size"])
    with pytest.raises(TypeError, match="no option 'namespce'; did you mean 'namespace'"):
        check_names(["namespce"], ["resync"], "namespace")
    with pytest.raises(TypeError, match="no option 'namespace'"):
        check_names(["namespace"], ["resync"], "namespace")


@pytest.mark.parametrize("seconds", [1, 0.5, float("inf")])
def test_positive_numbers_are_seconds(seconds: float) -> None:
    check_seconds("timeout", seconds)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_numbers_out_of_range_are_errors(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"timeout must be seconds, or None .*, not {seconds:g}"):
        check_seconds("timeout", seconds)


@pytest.mark.parametrize("seconds", ["60", True, None])
def test_other_types_are_errors(seconds: object) -> None:
    with pytest.raises(TypeError, match=f"resync must be seconds, or 0 for never, not {seconds!r}"):
        check_seconds("resync", seconds, zero="never")


def test_zero_is_allowed_where_it_has_a_meaning() -> None:
    check_seconds("resync", 0, zero="never")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("label_selector", "labels"),
        ("labelSelector", "labels"),
        ("selector", "labels"),
        ("field_selector", "fields"),
        ("ns", "namespace"),
        ("limit", "page_size"),
    ],
)
def test_names_of_other_clients_are_translated(given: str, meant: str) -> None:
    options = ["labels", "fields", "namespace", "page_size", "shard_selector"]
    with pytest.raises(TypeError, match=f"no option {given!r}; did you mean {meant!r}"):
        check_names([given], options)
