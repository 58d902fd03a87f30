"""Pydantic models as what programs see of cached objects."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from aioinformer import SharedInformer, SharedInformerFactory
from aioinformer.adapters.pydantic import model
from aioinformer.errors import ModelMismatch
from aioinformer.testing import Cluster, ClusterSource
from tests.core.builders import make_object, pod_body


class Metadata(BaseModel):
    name: str
    labels: dict[str, int] = {}


class Pod(BaseModel):
    model_config = ConfigDict(frozen=True)

    metadata: Metadata
    kind: str
    api_version: str = Field(alias="apiVersion")


@asynccontextmanager
async def pods_labelled(n: str) -> AsyncGenerator[SharedInformer[Pod]]:
    """Run an informer of a cluster with one pod."""
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0", "labels": {"n": n}}})
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", convert=model(Pod))
        await informers.wait_synced(timeout=30)
        yield pods


async def test_an_informer_shows_pydantic_models() -> None:
    async with pods_labelled("7") as pods:
        found = pods.lister.list(labels="n=7")
        pod = pods.lister["default/web-0"]

    assert found == [pod]
    assert pods.name == "pods as Pod"
    assert (pod.metadata.labels, pod.kind, pod.api_version) == ({"n": 7}, "Pod", "v1")


def test_two_adapters_of_the_same_model_are_equal() -> None:
    assert model(Pod) == model(Pod)
    assert hash(model(Pod)) == hash(model(Pod))
    assert len({model(Pod), model(Metadata)}) == 2


async def test_an_object_that_does_not_fit_is_reported_without_its_values() -> None:
    async with pods_labelled("hush") as pods:
        with pytest.raises(ModelMismatch) as caught:
            pods.lister.list()

    error: BaseException | None = caught.value
    said = "convert= Pod failed: ValueError: metadata.labels.n: Input should be a valid int"
    assert said in str(error)
    while error is not None:
        assert "hush" not in repr(error)
        error = error.__cause__ or error.__context__


def test_the_kind_in_an_object_is_not_overwritten() -> None:
    body = pod_body("a") | {"kind": "Other", "apiVersion": "v7"}

    assert model(Pod)(make_object(body)).kind == "Other"
    assert model(Pod)(make_object(body)).api_version == "v7"
    assert model(Pod)(make_object(pod_body("a"))).kind == "Pod"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def reject(value: str) -> str:
    raise ValueError(f"{value} is weak")


def reject_with_own_type(value: str) -> str:
    raise PydanticCustomError("too_weak", "{word} is weak", {"word": value})


class Quoting(BaseModel):
    """A model whose errors have the value in their texts, in pydantic's own words or in others."""

    animal: Annotated[Cat | Dog, Field(discriminator="kind")] = Cat(kind="cat")
    word: Annotated[str, AfterValidator(reject)] = ""
    own: Annotated[str, AfterValidator(reject_with_own_type)] = ""
    id: UUID = UUID(int=0)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (
            "animal",
            {"kind": "hush"},
            "animal: Input tag doesn't match any of the expected tags: 'cat', 'dog'",
        ),
        ("word", "hush", "word: value_error (its text may quote the value and is not shown)"),
        ("own", "hush", "own: too_weak (its text may quote the value and is not shown)"),
        ("id", "hush", "id: uuid_parsing (its text may quote the value and is not shown)"),
    ],
)
def test_an_error_whose_text_quotes_the_value_is_named_by_its_type(
    field: str, value: object, text: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(text)) as caught:
        model(Quoting)(make_object(pod_body("a") | {field: value}))

    error: BaseException | None = caught.value
    while error is not None:
        assert "hush" not in repr(error)
        error = error.__cause__ or error.__context__
