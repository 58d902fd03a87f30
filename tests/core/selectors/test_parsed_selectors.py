"""Label and field selectors against a naive model, and against the server's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
from aioinformer.errors import InvalidSelector

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9_.]{0,8}[a-z0-9])?", fullmatch=True)
PREFIXES = st.sampled_from(["", "example.com/", "a.b-c/"])
KEYS = st.tuples(PREFIXES, NAMES).map("".join)
SHARED_KEYS = st.sampled_from(["app", "tier", "in", "notin", "example.com/app"])
VALUES = st.one_of(st.just(""), NAMES, st.sampled_from(["in", "notin", "1", "12", "x"]))
SPACES = st.sampled_from(["", " ", "\t", "  "])
LABELS = st.dictionaries(SHARED_KEYS, VALUES, max_size=4)


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """Draw a condition on a label: key, operator, values."""
    operator = draw(st.sampled_from(["=", "==", "!=", "in", "notin", "exists", "!", ">", "<"]))
    key = draw(st.one_of(SHARED_KEYS, KEYS))
    match operator:
        case "in" | "notin":
            return key, operator, draw(st.lists(VALUES, min_size=1, max_size=3))
        case "exists" | "!":
            return key, operator, []
        case ">" | "<":
            return key, operator, [str(draw(st.integers(0, 20)))]
        case _:
            return key, operator, [draw(VALUES)]


def spelled(condition: tuple[str, str, list[str]], space: str = "") -> str:
    key, operator, values = condition
    match operator:
        case "in" | "notin" if values == [""]:
            return f"{key} {operator} (,)"  # "()" is the empty set, which the parser rejects
        case "in" | "notin":
            return f"{key} {operator}{space}({f',{space}'.join(values)}{space})"
        case "exists":
            return key
        case "!":
            return f"!{space}{key}"
        case _:
            return f"{key}{space}{operator}{space}{values[0]}"


def holds(condition: tuple[str, str, list[str]], labels: Mapping[str, str]) -> bool:
    """Match as the API reference says, in a second implementation."""
    key, operator, values = condition
    there = key in labels
    if operator in ("exists", "!"):
        return there is (operator == "exists")
    if operator in ("!=", "notin"):
        return not there or labels[key] not in values
    if operator in (">", "<") and there and labels[key].isdigit():
        difference = int(labels[key]) - int(values[0])
        return difference > 0 if operator == ">" else difference < 0
    return operator not in (">", "<") and there and labels[key] in values


@given(st.lists(comparisons(), max_size=4), LABELS, SPACES)
def test_a_label_selector_requires_all_of_its_conditions(
    conditions: list[tuple[str, str, list[str]]], labels: dict[str, str], space: str
) -> None:
    selector = LabelSelector.parse(",".join(spelled(one, space) for one in conditions))
    assert selector.matches(labels) is all(holds(one, labels) for one in conditions)


@given(st.lists(comparisons(), max_size=4))
def test_a_label_selector_survives_its_own_rendering(
    conditions: list[tuple[str, str, list[str]]],
) -> None:
    selector = LabelSelector.parse(",".join(map(spelled, conditions)))
    assert LabelSelector.parse(str(selector)) == selector
    assert str(LabelSelector.parse(str(selector))) == str(selector)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_mapping_means_equality_with_each_of_its_labels(labels: dict[str, str]) -> None:
    spelled_out = ",".join(f"{key}={value}" for key, value in labels.items())
    assert LabelSelector.parse(labels) == LabelSelector.parse(spelled_out)
    assert LabelSelector.parse(labels).matches(labels)


@given(st.text(alphabet="ab=!(),<> -/.\tin", max_size=12))
def test_any_text_is_a_label_selector_or_invalid(text: str) -> None:
    try:
        selector = LabelSelector.parse(text)
    except InvalidSelector:
        return
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    "spellings",
    [
        ("a=b", "a==b", "a in (b)", " a = b ", "a in (b,b)", {"a": "b"}, "a=b,a==b"),
        ("a!=b", "a notin (b)"),
        ("a,b", "b,a"),
        ("a in (x,y)", "a in (y,x)", "a in ( y , x )"),
        ("a=", "a==", "a in (,)", {"a": ""}),
        ("", None, {}),
    ],
    ids=str,
)
def test_spellings_of_one_label_selector_are_equal(
    spellings: tuple[str | dict[str, str] | None, ...],
) -> None:
    assert len({LabelSelector.parse(spelling) for spelling in spellings}) == 1


def test_an_empty_selector_selects_everything() -> None:
    assert LabelSelector.parse(None).matches({})
    assert FieldSelector.parse(None).matches({})
    assert not LabelSelector.parse("")
    assert not FieldSelector.parse("")


@pytest.mark.parametrize("labels", [{}, {"nothing": ""}, {"a": "b"}])
def test_a_selector_for_nothing_matches_nothing_and_survives_its_rendering(
    labels: dict[str, str],
) -> None:
    nothing = LabelSelector.nothing()
    assert not nothing.matches(labels)
    assert nothing
    assert LabelSelector.parse(str(nothing)) == nothing == LabelSelector.parse(nothing)


@pytest.mark.parametrize("text", ["a in ()", "a in ( )", "a in (,)"])
def test_a_set_without_values_has_the_empty_value_as_on_the_server(text: str) -> None:
    """Source: labels.Parser in apimachinery 0.37.2, which was run."""
    assert LabelSelector.parse(text) == LabelSelector.parse("a=")
    assert LabelSelector.parse(text.replace("in", "notin")) == LabelSelector.parse("a!=")


@pytest.mark.parametrize("text", ["a!=b", "a notin (b,c)"])
def test_inequality_matches_an_object_without_the_label(text: str) -> None:
    assert LabelSelector.parse(text).matches({})


@pytest.mark.parametrize(
    ("text", "value", "selected"),
    [("a>9", "10", True), ("a>9", "9", False), ("a<10", "9", True), ("a<10", "10", False)],
)
def test_labels_are_compared_as_integers_not_as_text(text: str, value: str, selected: bool) -> None:
    assert LabelSelector.parse(text).matches({"a": value}) is selected


@pytest.mark.parametrize("value", ["", "x", "1.5", "0x10"])
def test_a_label_that_is_no_integer_is_neither_greater_nor_less(value: str) -> None:
    assert not LabelSelector.parse("a>0").matches({"a": value})
    assert not LabelSelector.parse("a<9").matches({"a": value})


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a===", "unable to parse requirement: found '=', expected: identifier", 3),
        ("=a", "found '=', expected: !, identifier, or 'end of string'", 0),
        ("a,", "found '', expected: identifier after ','", 2),
        ("a=b c", "found 'c', expected: ',' or 'end of string'", 4),
        ("!a=b", "found '=', expected: ',' or 'end of string'", 2),
        ("!", "unable to parse requirement: found '', expected: identifier", 1),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            2,
        ),
        ("a in b", "unable to parse requirement: found 'b' expected: '('", 5),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'", 7),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", 6),
        ("a in (b,!", "unable to parse requirement: found '!', expected: ',', or identifier", 8),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
            "operators, the value must be an integer",
            2,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 10 else "",
)
def test_the_error_of_an_invalid_label_selector_has_the_text_of_the_server_and_a_mark(
    text: str, problem: str, column: int
) -> None:
    """Source: labels.Parser in apimachinery."""
    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(text)
    sentence, shown, mark = str(caught.value).split("\n")
    assert sentence == problem
    assert shown.strip() == text
    assert mark.index("^") - 4 == column


@pytest.mark.parametrize("text", ["a in (b", "a,", "!", "a in (b,c  "])
def test_a_label_selector_that_stops_too_early_is_marked_as_such(text: str) -> None:
    """The message contains the server's own sentence (``found ''``), which alone is not clear."""
    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(text)
    sentence, shown, mark = str(caught.value).split("\n")
    assert "found ''" in sentence
    assert mark == " " * len(shown) + "^ at the end"


@pytest.mark.parametrize("position", [60, 5000, 9_990])
def test_the_error_shows_the_part_of_a_long_selector_around_the_mark(position: int) -> None:
    text = "a" * position + "=(" + "b" * (10_000 - position)

    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(text)

    problem, shown, mark = str(caught.value).split("\n")
    assert len(problem) < 600
    assert len(shown) < 300
    assert shown[mark.index("^")] in "a("  # the server rejects a key that is too long


@pytest.mark.parametrize("text", ["a===b", "a in b", "a b"])
def test_only_a_text_that_stops_too_early_is_marked_as_such(text: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(text)
    assert str(caught.value).endswith("^")


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("-a=b", "name part must consist of"),
        ("a/b/c", "a qualified name must consist of"),
        ("/a", "prefix part must be non-empty"),
        ("A_B/a", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/", "name part must be non-empty"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a." * 127 + "a/b", "prefix part must be no more than 253 bytes"),
        ("a=-", 'values[0][a]: Invalid value: "-": a valid label must be'),
        ("a in (b,-)", 'values[0][a]: Invalid value: "-": a valid label must be'),
        ("a=" + "b" * 64, "must be no more than 63 bytes"),
        ({"a b": "c"}, "name part must consist of"),
        ({"a": "b c"}, "a valid label must be an empty string or consist of"),
    ],
    ids=repr,
)
def test_invalid_keys_and_values_are_errors(selector: str | dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidSelector, match=re.escape(problem)):
        LabelSelector.parse(selector)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**62])
def test_numbers_that_no_server_can_hold_are_no_numbers(number: int) -> None:
    """Go's strconv.ParseInt, with 64 bits."""
    with pytest.raises(InvalidSelector, match="must be an integer"):
        LabelSelector.parse(f"a>{number}")
    assert not LabelSelector.parse("a>0").matches({"a": str(number)})
    assert not LabelSelector.parse("a<0").matches({"a": str(number)})
    assert LabelSelector.parse(f"a<{2**63 - 1}").matches({"a": str(2**63 - 2)})


def test_values_that_are_no_text_are_a_type_error_that_names_them() -> None:
    """A mapping may come from YAML, which makes booleans and numbers of unquoted words."""
    selector: Any = {"app": True}
    with pytest.raises(TypeError, match="'app' to True"):
        LabelSelector.parse(selector)
    with pytest.raises(TypeError, match="'app' to True"):
        FieldSelector.parse(selector)


# -- field selectors ---------------------------------------------------------------------------

PATHS = st.from_regex(r"[a-zA-Z]{1,6}(\.[a-zA-Z]{1,6}){0,2}", fullmatch=True)
FIELD_VALUES = st.text(alphabet="ab,=\\!. é", max_size=6)
FIELD_CONDITIONS = st.tuples(PATHS, st.sampled_from(["=", "==", "!="]), FIELD_VALUES)


def escaped(value: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\,=" else letter for letter in value)


@given(st.lists(FIELD_CONDITIONS, max_size=4), st.dictionaries(PATHS, FIELD_VALUES))
@example([("a", "=", "b,c=d\\e")], {"a": "b,c=d\\e"})
def test_a_field_selector_requires_all_of_its_conditions(
    conditions: list[tuple[str, str, str]], values: dict[str, str]
) -> None:
    text = ",".join(path + operator + escaped(value) for path, operator, value in conditions)
    selector = FieldSelector.parse(text)
    expected = all(
        (values.get(path, "") == value) is (operator != "!=")
        for path, operator, value in conditions
    )
    assert selector.matches(values) is expected
    assert selector.matches(lambda path: values.get(path, "")) is expected


@given(st.lists(FIELD_CONDITIONS, max_size=4))
def test_a_field_selector_survives_its_own_rendering(
    conditions: list[tuple[str, str, str]],
) -> None:
    text = ",".join(path + operator + escaped(value) for path, operator, value in conditions)
    selector = FieldSelector.parse(text)
    assert FieldSelector.parse(str(selector)) == selector


@given(st.text(alphabet="a=!,\\.", max_size=8))
def test_any_text_is_a_field_selector_or_invalid(text: str) -> None:
    try:
        selector = FieldSelector.parse(text)
    except InvalidSelector:
        return
    assert FieldSelector.parse(str(selector)) == selector


@given(st.dictionaries(PATHS, FIELD_VALUES, max_size=3))
def test_a_mapping_means_equality_with_each_of_its_fields(values: dict[str, str]) -> None:
    assert FieldSelector.parse(values).matches(values)
    rendered = ",".join(f"{path}={escaped(value)}" for path, value in values.items())
    assert FieldSelector.parse(values) == FieldSelector.parse(rendered)


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'", 0),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'", 4),
        ("=b", "invalid selector: '=b'; can't understand '=b'", 0),
        ("a=b=c", "invalid field selector: unescaped character in value: =", 3),
        ("x=y,a=b\\c", "invalid field selector: invalid escape sequence: \\c", 7),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\", 3),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 10 else "",
)
def test_an_invalid_field_selector_is_an_error_that_marks_the_position(
    text: str, problem: str, column: int
) -> None:
    """Source: ParseSelector and UnescapeValue of apimachinery's fields package."""
    with pytest.raises(InvalidSelector) as caught:
        FieldSelector.parse(text)
    sentence, shown, mark = str(caught.value).split("\n")
    assert sentence == problem
    assert shown.strip() == text
    assert mark.index("^") - 4 == column


@pytest.mark.parametrize("path", ["", "a=b", "a,b", "a!"])
def test_a_mapping_with_an_invalid_path_is_an_error_that_marks_the_path(path: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        FieldSelector.parse({path: "x"})
    sentence, shown, mark = str(caught.value).split("\n")
    assert sentence == f"invalid selector: can't understand '{path}' as a path"
    assert (shown, mark.index("^")) == (f"    {path}", 4)


def test_a_selector_with_conditions_is_true() -> None:
    assert LabelSelector.parse("a")
    assert FieldSelector.parse("a=b")


# -- messages of a real server -----------------------------------------------------------------


def answered(recording: str) -> tuple[str, str]:
    """Return the selector in a recording's request, and the message in its response."""
    folder = Path(__file__).parents[2] / "recordings"
    request = (folder / f"{recording}.request.http").read_text()
    _, _, selector = request.split()[1].partition("Selector=")
    body = (folder / f"{recording}.response.http").read_bytes().split(b"\r\n\r\n", 1)[1]
    return unquote(selector), json.loads(body)["message"]


def test_an_invalid_label_selector_has_the_message_of_a_server() -> None:
    text, message = answered("21-list-bad-label-selector")

    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(text)
    assert str(caught.value).splitlines()[0] == message


def test_a_field_that_a_server_can_not_select_by_is_left_to_it() -> None:
    """The valid fields depend on the resource, so the parser accepts every path."""
    text, message = answered("22-list-bad-field-selector")

    assert message == "field label not supported: spec.nope"
    assert str(FieldSelector.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("app:shop", "did you mean app=shop?"),
        ("tier=web,app:shop", "did you mean app=shop?"),
        ("app: shop", "did you mean app=...?"),
    ],
)
def test_the_error_for_a_label_in_yaml_form_suggests_the_correction(text: str, hint: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(text)
    first, *_ = str(caught.value).splitlines()
    assert first.endswith(hint)


@pytest.mark.parametrize("selector", [7, ["a=b"], b"a=b"])
def test_a_selector_of_another_type_is_a_type_error_that_shows_it(selector: Any) -> None:
    with pytest.raises(TypeError) as caught:
        FieldSelector.parse(selector)
    assert str(caught.value) == (
        "a field selector is a text such as 'spec.nodeName=node-1', or a mapping of paths to "
        f"values, not {selector!r}"
    )
    with pytest.raises(TypeError) as caught:
        LabelSelector.parse(selector)
    assert str(caught.value) == (
        "a label selector is a text such as 'app=shop', or a mapping such as {'app': 'shop'}, "
        f"not {selector!r}"
    )
