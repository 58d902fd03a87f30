"""The options of a cache file, and the objects and handlers that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import CacheFile
from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.resources import Resource, find_built_in
from tests.runtime.scripted_source import PODS

SECRETS = find_built_in("secrets")
PATH = Path("pods.db")


class Named(Struct):
    """A model of a pod."""


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"interval": 0}, ValueError, "interval"),
        ({"interval": -1}, ValueError, "interval"),
        ({"allow_secrets": 1}, TypeError, "allow_secrets"),
        ({"version": 2}, TypeError, "version must be text, not 2"),
    ],
)
def test_an_option_that_makes_no_sense_is_rejected(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        CacheFile(PATH, **options)


def test_the_informers_of_a_process_share_one_access_to_the_file() -> None:
    file = CacheFile("pods.db")

    assert file.access() is file.access()
    assert file.path == PATH
    assert repr(file) == "<CacheFile pods.db>"


def test_secrets_are_refused_unless_the_program_allows_them() -> None:
    refused = CacheFile(PATH).refusal(SECRETS, Shape.of())

    assert refused == "Secrets are not in pods.db: pass allow_secrets=True to store them"
    assert CacheFile(PATH, allow_secrets=True).refusal(SECRETS, Shape.of()) == ""
    others = Resource("example.com", "v1", "secrets", "Secret")  # of another group
    assert CacheFile(PATH).refusal(others, Shape.of()) == ""
    assert CacheFile(PATH).refusal(PODS, Shape.of()) == ""


def test_objects_of_a_model_are_refused_and_those_of_a_conversion_are_not() -> None:
    refused = CacheFile(PATH).refusal(PODS, Shape.of(model=Named))

    assert refused == "pods are not in pods.db: model= keeps no JSON; use convert="
    assert CacheFile(PATH).refusal(PODS, Shape.of(convert=repr)) == ""
