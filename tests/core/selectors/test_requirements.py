"""Conditions on labels, and the errors of invalid keys, values and selectors."""

from __future__ import annotations

import pytest

from aioinformer._core.selectors.requirements import (
    EXCERPT_LENGTH,
    MAX_PROBLEM_LENGTH,
    LabelOperator,
    LabelRequirement,
    key_problem,
    parse_integer,
    selector_error,
    value_problem,
)

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [
        ("exists", (), ["", "4", "5", "6", "x"]),
        ("!", (), [None]),
        ("=", ("5",), ["5"]),
        ("!=", ("5",), [None, "", "4", "6", "x"]),
        ("in", ("4", "x"), ["4", "x"]),
        ("notin", ("4", "x"), [None, "", "5", "6"]),
        (">", ("5",), ["6"]),
        ("<", ("5",), ["4"]),
        (">", ("x",), []),
        ("<", ("x",), []),
    ],
)
def test_a_condition_matches_the_values_that_its_operator_states(
    operator: LabelOperator, values: tuple[str, ...], matched: list[str | None]
) -> None:
    condition = LabelRequirement("a", operator, values)

    others: list[str | None] = [None, "", "4", "5", "6", "x"]
    found = [
        each
        for each in others
        if condition.matches({"b": "5"} | ({} if each is None else {"a": each}))
    ]
    assert found == matched


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        ("exists", (), "a"),
        ("!", (), "!a"),
        ("in", ("b", "c"), "a in (b,c)"),
        ("notin", ("b", "c"), "a notin (b,c)"),
        ("=", ("b",), "a=b"),
        ("!=", ("b",), "a!=b"),
        (">", ("5",), "a>5"),
    ],
)
def test_a_condition_is_written_as_the_server_parses_it(
    operator: LabelOperator, values: tuple[str, ...], text: str
) -> None:
    assert str(LabelRequirement("a", operator, values)) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("0" * 62 + "5", 5),
        ("0" * 63 + "5", None),
        ("", None),
        ("5x", None),
        ("x5", None),
        ("1.5", None),
        ("++5", None),
    ],
)
def test_an_integer_is_what_a_server_reads_in_64_bits(text: str, number: int | None) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize(
    "key",
    [
        "a",
        "A_b.c-1",
        "a" * 63,
        "example.com/A",
        "a-1.b2/c",
        "1/a",
        "a." * 126 + "a/b",
    ],
)
def test_a_valid_key_has_no_problem(key: str) -> None:
    assert key_problem(key) == ""


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (
            "a/b/c",
            f"a qualified name {NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        ),
        ("/a", "prefix part must be non-empty"),
        ("A/b", f"prefix part {PREFIX_RULE}"),
        ("a./b", f"prefix part {PREFIX_RULE}"),
        ("a." * 126 + "ab/c", "prefix part must be no more than 253 bytes"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a_", f"name part {NAME_RULE}"),
        (
            "\u00e9" * 32,
            f"name part must be no more than 63 bytes; name part {NAME_RULE}",
        ),
        ("a/", f"name part must be non-empty; name part {NAME_RULE}"),
        ("", f"name part must be non-empty; name part {NAME_RULE}"),
    ],
)
def test_the_problem_of_a_key_is_stated_as_the_server_states_it(key: str, problem: str) -> None:
    assert key_problem(key) == f'<nil>: Invalid value: "{key}": {problem}'


@pytest.mark.parametrize("value", ["", "a", "A_b.c-1", "a" * 63])
def test_a_valid_value_has_no_problem(value: str) -> None:
    assert value_problem("a", 0, value) == ""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("a" * 64, "must be no more than 63 bytes"),
        ("-", VALUE_RULE),
        ("\u00e9" * 32, f"must be no more than 63 bytes; {VALUE_RULE}"),
    ],
)
def test_the_problem_of_a_value_is_stated_with_its_place(value: str, problem: str) -> None:
    assert value_problem("k", 2, value) == f'values[2][k]: Invalid value: "{value}": {problem}'


@pytest.mark.parametrize("position", [0, 1, 99, 100, 101, 150, 199, 200, 249, 250])
def test_the_mark_stands_below_its_character(position: int) -> None:
    text = "".join(chr(0x4E00 + index) for index in range(250))

    message = str(selector_error("a problem", text, position))

    problem, shown, mark = message.split("\n")
    assert problem == "a problem"
    if position == len(text):
        assert mark == " " * len(shown) + "^ at the end"
    else:
        assert (shown[mark.index("^")], mark.strip()) == (text[position], "^")
    first, end = max(0, position - EXCERPT_LENGTH), position + EXCERPT_LENGTH
    dots = "..." if first else "", "..." if end < len(text) else ""
    assert shown == f"    {dots[0]}{text[first:end]}{dots[1]}"


@pytest.mark.parametrize("length", [MAX_PROBLEM_LENGTH, MAX_PROBLEM_LENGTH + 1])
def test_a_long_problem_is_cut(length: int) -> None:
    problem, _, _ = str(selector_error("x" * length, "a", 0)).split("\n")

    assert problem == "x" * 500 + ("" if length == 500 else "...")


def test_conditions_are_sorted_by_key_and_operator() -> None:
    ordered = [LabelRequirement(key, each) for key in "ab" for each in ("!", "exists")]

    assert sorted([ordered[2], ordered[1], ordered[3], ordered[0]]) == ordered
