"""The options of an operator, and its default identity."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from aioinformer import Operator
from aioinformer.errors import UsageError
from aioinformer.operator.options import OperatorKeywords, OperatorOptions, default_identity
from aioinformer.testing import ClusterSource
from tests.controllers.reconcilers import make_cluster


def options(**given: Any) -> OperatorOptions:
    return OperatorOptions(**dict[str, Any](name="foo-operator") | given)


def test_each_keyword_is_an_option() -> None:
    assert {*OperatorKeywords.__annotations__, "name"} == {
        each.name for each in fields(OperatorOptions)
    }


@pytest.mark.parametrize(
    ("misspelt", "meant"), [("nam", "name"), ("leader_elction", "leader_election")]
)
def test_a_misspelt_keyword_is_corrected(misspelt: str, meant: str) -> None:
    source, wrong = ClusterSource(make_cluster()), dict[str, Any]({"name": "it", misspelt: "x"})
    with pytest.raises(TypeError, match=f"no option '{misspelt}'; did you mean '{meant}'"):
        Operator(source, **wrong)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"name": ""}, UsageError, "an Operator needs a name"),
        ({"name": "x" * 200}, ValueError, "name"),
        ({"leader_election": "web"}, UsageError, "such as 'default/web', not 'web'"),
        ({"leader_election": "/web"}, UsageError, "such as 'default/web', not '/web'"),
        ({"leader_election": "web/"}, UsageError, "such as 'default/web', not 'web/'"),
        ({"leader_election": ""}, UsageError, "such as 'default/my-operator', not ''"),
        ({"leader_election": True}, UsageError, "such as 'default/my-operator', not True"),
        ({"lease_duration": 5.0}, ValueError, "renew_deadline"),
        ({"port": "80"}, TypeError, "port"),
        ({"port": -1}, ValueError, "port must be from 0 to 65535, not -1"),
        ({"port": 65536}, ValueError, "port must be from 0 to 65535, not 65536"),
        ({"shutdown_timeout": -1}, ValueError, "shutdown_timeout"),
        ({"on_error": 3}, TypeError, "on_error"),
    ],
)
def test_an_option_that_makes_no_sense_is_rejected(
    given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        options(**given)


def test_the_limits_of_the_options_are_accepted() -> None:
    assert options(port=0, shutdown_timeout=0).port == 0
    assert options(port=65535, leader_election="web/lease").leader_election == "web/lease"


def test_the_default_identity_begins_with_the_pod_and_is_another_one_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POD_NAME", "shop-0")
    first, second = default_identity(), default_identity()

    assert first.startswith("shop-0_")
    assert len(first) == len("shop-0_") + 12
    assert first != second


def test_the_default_identity_outside_of_a_pod_begins_with_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)

    host, _, number = default_identity().rpartition("_")

    assert host
    assert int(number, 16) >= 0
