"""Label selectors written as mappings, against the same ones as text and against a naive model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._core.selectors.parsed_selectors import LabelSelector
from aioinformer.errors import InvalidSelector
from tests.core.builders import make_object, pod_body

KEYS = st.sampled_from(["app", "tier", "in", "matchLabels", "example.com/app"])
VALUES = st.sampled_from(["", "a", "b", "in", "12", "x.y"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    """One of ``matchExpressions``."""
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    several = operator in ("In", "NotIn")
    values = draw(st.lists(VALUES, min_size=1, max_size=3)) if several else []
    nothing: Any = draw(st.sampled_from([[], None, ...]))  # as Go writes it, or leaves it out
    found: dict[str, Any] = {"key": draw(KEYS), "operator": operator, "values": values or nothing}
    return {name: value for name, value in found.items() if value is not ...}


def holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Match as the API reference says, in a second implementation."""
    there = expression["key"] in labels
    match expression["operator"]:
        case "In":
            return there and labels[expression["key"]] in expression["values"]
        case "NotIn":
            return not there or labels[expression["key"]] not in expression["values"]
        case "Exists":
            return there
        case _:
            return not there


@given(LABELS, st.lists(expressions(), max_size=3), LABELS)
@example({}, [{"key": "app", "operator": "In", "values": ["", "a"]}], {"app": ""})
def test_the_selector_of_an_object_requires_all_of_its_parts(
    equal: dict[str, str], asked: list[dict[str, Any]], labels: dict[str, str]
) -> None:
    selector = LabelSelector.parse({"matchLabels": equal, "matchExpressions": asked})

    expected = equal.items() <= labels.items() and all(holds(each, labels) for each in asked)
    assert selector.matches(labels) is expected
    assert LabelSelector.parse(str(selector)) == selector, "the server reads it as it is meant"


PLAIN_KEYS = KEYS.filter(lambda key: key != "matchLabels")  # with a list it is that of an object


@given(
    st.dictionaries(PLAIN_KEYS, VALUES | st.lists(VALUES, min_size=1, max_size=3), max_size=3),
    LABELS,
)
def test_several_values_for_a_label_mean_any_of_them(
    asked: dict[str, Any], labels: dict[str, str]
) -> None:
    selector = LabelSelector.parse(asked)

    assert selector.matches(labels) is all(
        key in labels and labels[key] in ([value] if isinstance(value, str) else value)
        for key, value in asked.items()
    )
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"app": "shop"}, "app=shop"),
        ({"app": ["shop"]}, "app=shop"),
        ({"app": ["b", "a", "b"]}, "app in (a,b)"),
        ({"app": ("a", "b")}, "app in (a,b)"),
        pytest.param({"app": {"a", "b"}}, "app in (a,b)", id="a set"),
        ({"matchLabels": {"app": "shop"}}, "app=shop"),
        ({"matchLabels": {"app": "shop"}, "matchExpressions": None}, "app=shop"),
        ({"matchLabels": None, "matchExpressions": []}, ""),
        ({"matchLabels": "x", "app": "y"}, "app=y,matchLabels=x"),  # a label of that name
        (
            {
                "matchLabels": {"app": "shop"},
                "matchExpressions": [
                    {"key": "tier", "operator": "NotIn", "values": ["web", "api"]},
                    {"key": "canary", "operator": "DoesNotExist"},
                ],
            },
            "app=shop,!canary,tier notin (api,web)",
        ),
    ],
    ids=str,
)
def test_a_mapping_and_a_text_that_mean_the_same_are_one_selector(
    selector: LabelMapping, text: str
) -> None:
    assert LabelSelector.parse(selector) == LabelSelector.parse(text)
    assert str(LabelSelector.parse(selector)) == text


def test_the_selector_in_a_cached_object_can_be_handed_on() -> None:
    """``pods.lister.list(labels=deployment["spec"]["selector"])``."""
    expression = {"key": "tier", "operator": "In", "values": ["web", "api"]}
    selector = {"matchLabels": {"app": "shop"}, "matchExpressions": [expression]}
    deployment = make_object(pod_body("shop") | {"spec": {"selector": selector}})

    parsed = LabelSelector.parse(deployment["spec"]["selector"])

    assert str(parsed) == "app=shop,tier in (api,web)"


@pytest.mark.parametrize(
    ("selector", "problem", "shown", "column"),
    [
        (
            {"app": ["ok", "-no"]},
            'values[0][app]: Invalid value: "-no": a valid label must be',
            "app in (-no,ok)",
            8,
        ),
        (
            {"app": ["ok", "zz-"]},
            'values[1][app]: Invalid value: "zz-": a valid label must be',
            "app in (ok,zz-)",
            11,
        ),
        ({"a/b/c": "d"}, '<nil>: Invalid value: "a/b/c": a qualified name', "a/b/c=d", 0),
        (
            {"app": []},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            "app in ()",
            4,
        ),
        (
            {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]},
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
            "app exists (x)",
            4,
        ),
        (
            {"matchExpressions": [{"key": "app", "operator": "in", "values": ["x"]}]},
            '"in" is not a valid label selector operator',
            "app in",
            0,
        ),
        (
            {"matchExpressions": [{"key": "app"}]},
            '"None" is not a valid label selector operator',
            "app None",
            0,
        ),
    ],
    ids=str,
)
def test_an_invalid_selector_is_an_error_that_marks_the_position(
    selector: LabelMapping, problem: str, shown: str, column: int
) -> None:
    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse(selector)

    sentence, text, mark = str(caught.value).split("\n")
    assert problem in sentence
    assert (text.strip(), mark.index("^") - 4) == (shown, column)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"app": True}, "maps labels to strings, not 'app' to True"),
        ({"app": None}, "maps labels to strings, not 'app' to None"),
        ({"app": ["a", 1]}, r"maps labels to strings, not 'app' to \['a', 1\]"),
        ({"app": {"a": "b"}}, "maps labels to strings, not 'app' to {'a': 'b'}"),
        ({"matchLabels": {"app": ["a"]}}, r"maps labels to strings, not 'app' to \['a'\]"),
        ({"matchLabels": ["app"]}, r"matchLabels is a mapping, not \['app'\]"),
        ({"matchLabels": {}, "app": "x"}, "there can't be 'app'"),
        ({"matchExpressions": {"key": "app"}}, "matchExpressions is a list, not {'key': 'app'}"),
        ({"matchExpressions": ["app"]}, "matchExpressions has mappings with a key"),
        ({"matchExpressions": [{"operator": "Exists"}]}, "matchExpressions has mappings"),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_a_type_error_that_shows_it(
    selector: LabelMapping, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        LabelSelector.parse(selector)
