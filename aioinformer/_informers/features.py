"""The features that an informer can have: the one place of the library that lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

if TYPE_CHECKING:  # for types alone
    from aioinformer._runtime.informer.feature import Feature
    from aioinformer._runtime.informer.options import PipelineOptions

MakeFeature: TypeAlias = "Callable[[], Feature]"

FEATURES: Mapping[str, str] = {
    "shard": "aioinformer.sharding.feature",
    "cache": "aioinformer.cachefile.feature",
}
"""The module of each feature, by the option that attaches it. The module is loaded by the first use
of the option. A feature wraps the reflectors of those before it."""


class FeatureModule(Protocol):
    """The module that attaches a feature by the value of its option."""

    def check_option(self, value: Any) -> None:
        """Raise ``TypeError`` or ``ValueError`` for a value that the feature can't have."""

    def make_feature(self, value: Any) -> Feature | None:
        """Return a new feature; ``None`` if the value asks for nothing."""


def _modules(options: PipelineOptions) -> list[tuple[FeatureModule, object]]:
    given = [(module, getattr(options, option)) for option, module in FEATURES.items()]
    return [
        (cast("FeatureModule", import_module(module)), value)
        for module, value in given
        if value is not None
    ]


def check_features(options: PipelineOptions, own: tuple[MakeFeature, ...]) -> None:
    """Raise ``TypeError`` or ``ValueError`` for an option that its feature can't have.

    ``own`` are the features of the program.
    """
    for module, value in _modules(options):
        module.check_option(value)
    for make in own:
        if not callable(make):
            raise TypeError(f"features must be functions that return a Feature, not {make!r}")


def make_features(options: PipelineOptions, own: tuple[MakeFeature, ...]) -> tuple[Feature, ...]:
    """Return the features of a new informer with these options, and those of the program."""
    found = [module.make_feature(value) for module, value in _modules(options)]
    return (*(each for each in found if each is not None), *map(_make_own, own))


def _make_own(make: MakeFeature) -> Feature:
    from aioinformer._runtime.informer.feature import Feature

    made = cast("object", make())
    if not isinstance(made, Feature):
        raise TypeError(f"features must be functions that return a Feature: {make!r} made {made!r}")
    return made
