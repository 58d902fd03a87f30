"""The options of a reflector, and the keywords that build them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import BackoffPolicy, DeltaQueue, InformerOptions, LivenessPolicy, Reflector
from aioinformer._runtime.reflector.options import ReflectorOptions
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import ScriptedListerWatcher, scripted_lister_watcher


def test_keywords_replace_the_fields_of_their_names() -> None:
    backoff = BackoffPolicy(initial=0.1)
    options = ReflectorOptions(page_size=7).merge({"backoff": backoff, "watch_list": False})

    assert options == ReflectorOptions(page_size=7, backoff=backoff, watch_list=False)


def test_a_keyword_that_is_none_keeps_the_field() -> None:
    options = ReflectorOptions(liveness=LivenessPolicy(idle_factor=2))

    assert options.merge({"backoff": None, "liveness": None}) == options


def test_an_unknown_keyword_is_an_error() -> None:
    misspelled: dict[str, Any] = {"pagesize": 7}
    with pytest.raises(TypeError, match="pagesize"):
        Reflector(scripted_lister_watcher(), DeltaQueue(), **misspelled)


def built_from_options(source: ScriptedListerWatcher) -> Reflector:
    return Reflector(source, DeltaQueue(), options=ReflectorOptions(page_size=3))


def built_from_keywords(source: ScriptedListerWatcher) -> Reflector:
    return Reflector(source, DeltaQueue(), page_size=3)


@pytest.mark.parametrize("build", [built_from_options, built_from_keywords])
async def test_a_reflector_takes_its_options_whole_or_as_keywords(
    build: Callable[[ScriptedListerWatcher], Reflector],
) -> None:
    source = scripted_lister_watcher()
    async with running_in_background(build(source).run()):
        await source.wait_for_request(1)

    assert source.requests[0].query()["limit"] == "3"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"page_size": -1}, ValueError, "page_size must be at least 0, not -1"),
        ({"page_size": "5"}, TypeError, "page_size must be a whole number, not '5'"),
        ({"line_cap": 0}, ValueError, "line_cap must be at least 1, not 0"),
    ],
    ids=["negative", "text", "no bytes"],
)
def test_a_number_that_no_server_accepts_is_rejected(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ReflectorOptions(**options)
    with pytest.raises(error, match=message):
        InformerOptions(**options)
