"""The options of an informer: where they are given, and what a mistake in them says."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import (
    BackoffPolicy,
    Metrics,
    Problem,
    SharedInformer,
    SharedInformerFactory,
    field,
)
from aioinformer._informers.options import (
    InformerKeywords,
    InformerOptions,
    InformerRequest,
    InformerScope,
    chosen_options,
)
from aioinformer.errors import Forbidden
from tests.runtime.scripted_source import scripted_lister_watcher, scripted_source


def test_each_option_is_a_keyword() -> None:
    assert set(InformerKeywords.__annotations__) == set(InformerOptions.__struct_fields__)
    assert not set(InformerKeywords.__annotations__) & set(InformerScope.__annotations__)
    assert set(InformerRequest.__annotations__) == set(
        InformerKeywords.__annotations__ | InformerScope.__annotations__
    )


def test_keywords_replace_options_and_none_keeps_an_option() -> None:
    options = InformerOptions(resync=30.0, page_size=500)
    merged = options.merge({"page_size": 50, "backoff": None})
    assert merged == InformerOptions(resync=30.0, page_size=50)
    assert type(merged) is InformerOptions
    assert options.merge({}) is options
    with pytest.raises(AttributeError):
        options.resync = 1.0  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def test_the_options_of_a_request_are_the_keywords_outside_its_scope() -> None:
    request: InformerRequest = {
        "namespace": "web",
        "labels": "app=shop",
        "resync": 30.0,
        "metrics": None,
    }
    assert chosen_options(request) == {"resync": 30.0}


def report(problem: Problem) -> None: ...


async def report_later(problem: Problem) -> None: ...


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"pagesize": 5}, "there is no option 'pagesize'; did you mean 'page_size'"),
        ({"colour": 5}, "there is no option 'colour'"),
        ({"metrics": Metrics}, r"metrics is an object: pass Metrics\(\), not the class"),
        ({"metrics": True}, "metrics must be an object with the methods of Metrics.*, not True"),
        ({"metrics": "x"}, "metrics must be an object with the methods of Metrics.*, not 'x'"),
        ({"tracing": object()}, "tracing must be an object with the methods of Tracing"),
        ({"tracing": 1}, "tracing must be an object with the methods of Tracing, not 1"),
        ({"fail_fast": True}, r"fail_fast .* tuple of errors such as \(Forbidden,\), not True"),
        ({"fail_fast": Forbidden}, "fail_fast must be a tuple of errors.*Forbidden"),
        ({"fail_fast": ("Forbidden",)}, "fail_fast must be a tuple of errors"),
        ({"fail_fast": (str,)}, "fail_fast must be a tuple of errors"),
        ({"on_error": report_later}, "must not be async"),
        ({"resync": "60"}, "resync must be seconds, or 0 for never, not '60'"),
    ],
)
def test_a_wrong_option_is_an_error_in_factories_and_in_informers(
    keywords: dict[str, Any], message: str
) -> None:
    informers = SharedInformerFactory(scripted_source())
    with pytest.raises(TypeError, match=message):
        SharedInformerFactory(scripted_source(), **keywords)
    with pytest.raises(TypeError, match=message):
        SharedInformer(scripted_lister_watcher(), **keywords)
    with pytest.raises(TypeError, match=message):
        informers.informer("pods", **keywords)
    assert not list(informers)


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("namespce", "namespace"), ("lables", "labels"), ("modle", "model"), ("resinc", "resync")],
)
def test_a_misspelt_keyword_of_one_informer_is_corrected(misspelt: str, meant: str) -> None:
    informers, wrong = SharedInformerFactory(scripted_source()), dict[str, Any]([(misspelt, "x")])
    message = f"there is no option '{misspelt}'; did you mean '{meant}'"
    with pytest.raises(TypeError, match=message):
        informers.informer("pods", **wrong)
    informers.informer("pods")
    with pytest.raises(TypeError, match=message):
        informers.informer("pods", **wrong)


@pytest.mark.parametrize(
    "option", ["namespaces", "labels", "transform", "metadata_only", "model", "indexers", "convert"]
)
def test_an_option_of_one_informer_is_named_as_such_where_a_program_passes_it_to_the_factory(
    option: str,
) -> None:
    given: dict[str, Any] = {option: ["a"]}
    message = f"a factory has no option '{option}': pass {option}= to informer\\(\\) or use\\(\\)"
    with pytest.raises(TypeError, match=message):
        SharedInformerFactory(scripted_source(), **given)


@pytest.mark.parametrize("indexers", [field("spec.nodeName"), ["node"], "node"])
async def test_indexers_that_are_no_mapping_are_a_type_error_at_each_place(indexers: Any) -> None:
    informers = SharedInformerFactory(scripted_source())
    message = "indexers must be a mapping of names to index functions"
    with pytest.raises(TypeError, match=message):
        informers.informer("pods", indexers=indexers)
    informers.informer("pods")
    with pytest.raises(TypeError, match=message):
        informers.informer("pods", indexers=indexers)
    with pytest.raises(TypeError, match=message):
        async with informers.use("pods", indexers=indexers):
            pass


def test_a_misspelt_keyword_of_a_factory_is_corrected() -> None:
    wrong: dict[str, Any] = {"shutdown_timout": 5}
    with pytest.raises(TypeError, match="did you mean 'shutdown_timeout'"):
        SharedInformerFactory(scripted_source(), **wrong)
    text: Any = "5"
    with pytest.raises(TypeError, match=r"shutdown_timeout must be seconds.*not '5'"):
        SharedInformerFactory(scripted_source(), shutdown_timeout=text)


@pytest.mark.parametrize("keywords", [{"resync": -1.0}, {"resync": float("nan")}])
def test_a_number_out_of_range_is_an_error_where_it_is_given(keywords: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be seconds, or 0 for never"):
        SharedInformerFactory(scripted_source(), **keywords)


def test_an_informer_takes_options_as_an_object_and_as_keywords() -> None:
    options = InformerOptions(resync=30.0, on_error=report)
    informer = SharedInformer(
        scripted_lister_watcher(), options=options, backoff=BackoffPolicy(initial=2)
    )
    assert informer.name == "pods"
