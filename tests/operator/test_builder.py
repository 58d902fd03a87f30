"""The declaration of one controller of an operator."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import KubeObject, ObjectKey
from aioinformer.errors import NotRunning, UnknownResource, UsageError
from aioinformer.testing import ClusterSource
from tests.controllers.reconcilers import BARS, FOOS, make_cluster, run_simulated
from tests.operator.operators import make_builder

FOO_NAME = "foos.samples.example.com"


def to_keys(obj: KubeObject) -> list[ObjectKey]:
    return [obj.key]


def test_a_custom_resource_has_its_own_name_and_its_informer_once_the_server_was_asked() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        builder = make_builder(source, "foo")
        assert builder.name == "foo"
        with pytest.raises(
            NotRunning, match="'foo' is not built in, and the operator asks the ser"
        ):
            _ = builder.informer
        await builder.resolve(source)
        assert builder.name == FOO_NAME
        assert builder.informer.resource == FOOS
        assert repr(builder) == f"<ControllerBuilder {FOO_NAME} triggers=1>"

    run_simulated(main)


def test_a_built_in_resource_needs_no_answer_of_the_server() -> None:
    async def main() -> None:
        builder = make_builder(ClusterSource(make_cluster()), "deploy")
        assert builder.name == "deployments.apps"
        assert builder.informer.resource.plural == "deployments"
        assert make_builder(ClusterSource(make_cluster()), FOOS, name="mine").name == "mine"

    run_simulated(main)


def test_a_trigger_that_the_server_does_not_serve_ends_the_start() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        builder = make_builder(source, FOOS).watches("wombats", to_keys)
        with pytest.raises(UnknownResource, match="wombats"):
            await builder.resolve(source)

    run_simulated(main)


def test_a_controller_that_has_started_takes_no_more_triggers() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        builder = make_builder(source, FOOS).owns(BARS)
        await builder.resolve(source)
        with pytest.raises(UsageError, match="has started; add triggers before"):
            builder.owns(BARS)
        with pytest.raises(UsageError, match="has started; add triggers before"):
            builder.watches("pods", to_keys)
        assert repr(builder) == f"<ControllerBuilder {FOO_NAME} triggers=2>"

    run_simulated(main)


@pytest.mark.parametrize(
    ("resource", "keywords", "text"),
    [
        (3, {}, "takes the name of a resource, a Resource, or an informer"),
        (FOOS, {"workers": 2}, "no option 'workers'; did you mean 'concurrency'"),
        (FOOS, {"backoff": 1}, "backoff must be a RateLimiter"),
        (FOOS, {"filter": 3}, "filter"),
        (FOOS, {"shards": 3}, "shards"),
    ],
)
async def test_a_wrong_declaration_fails_where_it_is_written(
    resource: object, keywords: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        make_builder(ClusterSource(make_cluster()), resource, **keywords)
