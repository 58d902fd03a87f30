"""The options of a controller."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from aioinformer import BackoffPolicy, Controller, SharedInformerFactory
from aioinformer.controllers import ControllerOptions
from aioinformer.controllers.controller import ControllerKeywords
from aioinformer.testing import ClusterSource
from tests.controllers.reconcilers import FOOS, RecordingReconciler, make_cluster


def test_each_keyword_is_an_option_with_a_default() -> None:
    assert {*ControllerKeywords.__annotations__, "filter"} == {
        each.name for each in fields(ControllerOptions)
    }
    assert ControllerOptions(name="it").name == "it"  # the only one without


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("workers", "concurrency"), ("shard", "shards"), ("fliter", "filter"), ("finaliser", "final")],
)
async def test_a_misspelt_keyword_is_corrected(misspelt: str, meant: str) -> None:
    foos = SharedInformerFactory(ClusterSource(make_cluster())).informer(FOOS)
    wrong = dict[str, Any]([(misspelt, 2)])
    with pytest.raises(TypeError, match=f"no option '{misspelt}'; did you mean '{meant}"):
        Controller(foos, RecordingReconciler(), **wrong)


def test_the_backoff_of_an_informer_is_not_the_backoff_of_keys() -> None:
    with pytest.raises(TypeError, match=r"must be a RateLimiter such as ItemExponential"):
        ControllerOptions(name="it", backoff=BackoffPolicy())  # type: ignore[arg-type] # on purpose


@pytest.mark.parametrize("name", ["timeout", "shutdown_timeout"])
def test_seconds_are_a_number(name: str) -> None:
    options: dict[str, Any] = {name: "30s"}
    with pytest.raises(TypeError, match=f"{name} must be seconds, or .*, not '30s'"):
        ControllerOptions(name="it", **options)
