"""The features that an option attaches to an informer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:  # for types alone
    from aioinformer._runtime.informer.feature import Feature
    from aioinformer._runtime.informer.options import PipelineOptions

MakeFeature: TypeAlias = "Callable[[], Feature]"

FEATURES: Mapping[str, str] = {
    "shard": "aioinformer.sharding.feature",
    "cache": "aioinformer.cachefile.feature",
}
"""The module of each feature, by the option that attaches it. The module is loaded by the first use
of the option. Its function ``make_feature`` returns a new feature for a value of the option, or
``None`` if the value asks for nothing, and raises ``TypeError`` for a value that can't be one. A
feature wraps the reflectors of those before it."""


def make_features(options: PipelineOptions, own: tuple[MakeFeature, ...]) -> tuple[Feature, ...]:
    """Return the features of a new informer with these options, and those of the program."""
    given = ((module, getattr(options, option)) for option, module in FEATURES.items())
    found: list[Feature | None] = [
        import_module(module).make_feature(value) for module, value in given if value is not None
    ]
    return (*filter(None, found), *map(_make_own, own))


def check_features(options: PipelineOptions, own: object) -> None:
    """Raise ``TypeError`` for an option that its feature can't have.

    ``own`` are the features of the program.
    """
    make_features(options, ())
    if not isinstance(own, tuple) or not all(map(callable, cast("tuple[object, ...]", own))):
        raise TypeError(f"features must be a tuple of functions that return a Feature, not {own!r}")


def _make_own(make: MakeFeature) -> Feature:
    from aioinformer._runtime.informer.feature import Feature

    made = cast("object", make())
    if not isinstance(made, Feature):
        raise TypeError(f"features must be functions that return a Feature: {make!r} made {made!r}")
    return made
