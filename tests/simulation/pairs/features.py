"""The features that histories draw together, what each switches on, and the pairs of them.

A feature is one line of ``FEATURES``. ``selections`` draws the features of a sequence of histories,
so that each pair comes equally often. A pair that makes no sense is in ``EXCLUDED`` with its
reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, count
from random import Random
from typing import Any, Literal, TypeAlias

import msgspec

from aioinformer import KubeObject, Resource, Shard, labelled

THINGS = Resource("example.com", "v1", "things", "Thing")
"""The resource of the objects."""
NAMESPACES = ("web", "db", "ops")
"""The namespaces of the objects."""
FOLLOWED = "team=shop"
"""The label of the namespaces that an informer follows."""
SHARDS = 2
INDEX = "app"
SHIFT = 1_000_000
"""A transform adds this to the label ``value``, and drops the objects whose label ``app`` is
``DROPPED``."""
DROPPED = "stock"
PASSING = "shop"
"""The value of the label ``app`` of the objects that pass a filter."""

ShardKey: TypeAlias = Literal["uid", "namespace"]
_SHARD_KEYS: tuple[ShardKey, ...] = ("uid", "namespace")
Pair: TypeAlias = frozenset[str]
Features: TypeAlias = frozenset[str]


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What a model keeps of the metadata."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str]


class Spec(msgspec.Struct, frozen=True):
    """What a model keeps of the spec. An object with another size doesn't fit."""

    size: int = 0


class Thing(msgspec.Struct, frozen=True):
    """An object as ``model=`` and ``convert=`` make it."""

    metadata: Metadata
    spec: Spec = Spec()


def converted(obj: KubeObject) -> Thing:
    """Return an object as a ``Thing``; raises at an object that doesn't fit."""
    return obj.decode(Thing)


def transformed(obj: KubeObject) -> Mapping[str, Any] | None:
    """Drop some objects, and return the others as ``changed`` does."""
    return None if obj.labels["app"] == DROPPED else changed(obj)


def changed(obj: KubeObject) -> Mapping[str, Any]:
    """Raise at objects that don't fit, and change the others.

    The status is cut out, as programs do that want small caches.
    """
    body = obj.to_dict()
    if not isinstance(body.get("spec", {}).get("size", 0), int):
        raise TypeError("size is no number")
    body.pop("status", None)
    labels = body["metadata"]["labels"]
    labels["value"] = str(int(labels["value"]) + SHIFT)
    return body


def labels_of(obj: KubeObject | Thing) -> Mapping[str, str]:
    """Return the labels of an object in any form."""
    return obj.metadata.labels if isinstance(obj, Thing) else obj.labels


def app_of(obj: KubeObject | Thing) -> list[str]:
    """Return what an index has of an object in any form."""
    return [labels_of(obj)["app"]]


def passes(obj: KubeObject | Thing) -> bool:
    """Return True if an object passes the filter. Works on objects in any form."""
    return labels_of(obj)["app"] == PASSING


@dataclass(slots=True)
class Setup:
    """What the features of one history have switched on."""

    chance: Random
    features: Features
    informer: dict[str, Any] = field(default_factory=dict[str, Any])
    """Keywords of ``informer()``."""
    replicas: int = 1
    lives: int = 1
    """Times that the program runs, one after the other."""
    indexed: bool = False
    follows: bool = False
    drops: bool = False
    """True if a transform drops objects."""
    group_by: ShardKey = "uid"

    def __contains__(self, feature: str) -> bool:
        return feature in self.features


def set_up(features: Features, chance: Random) -> Setup:
    """Switch features on."""
    setup = Setup(chance, features, indexed=chance.random() < 0.5)
    for name in FEATURES:
        if name in features:
            FEATURES[name].switch_on(setup)
    return setup


# -- the features --------------------------------------------------------------------------------


def _namespaces(setup: Setup) -> None:
    # A finalizer is refused with namespaces that are followed.
    setup.follows = "finalizer" not in setup and setup.chance.random() < 0.5
    chosen = labelled(FOLLOWED) if setup.follows else list(NAMESPACES[:2])
    setup.informer["namespaces"] = chosen


def _transform(setup: Setup) -> None:
    # The finalizer of an object that a transform drops is never removed: a warning names it.
    setup.drops = "finalizer" not in setup
    setup.informer["transform"] = transformed if setup.drops else changed


def _shard(setup: Setup) -> None:
    by = setup.chance.choice(_SHARD_KEYS)
    setup.informer["shard"] = Shard(setup.chance.randrange(SHARDS), SHARDS, by=by)


def _group(setup: Setup) -> None:
    setup.replicas = 2
    setup.group_by = setup.chance.choice(_SHARD_KEYS)


def _several_replicas(setup: Setup) -> None:
    setup.replicas = 2


def _several_lives(setup: Setup) -> None:
    setup.lives = 2


def _keyword(name: str, value: object) -> Callable[[Setup], None]:
    def switch_on(setup: Setup) -> None:
        setup.informer[name] = value

    return switch_on


def _nothing(_: Setup) -> None:
    """Change nothing here: the history and its replicas look at ``setup.features``."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One line of the table."""

    what: str
    """What a history with it does."""
    switch_on: Callable[[Setup], None] = _nothing
    needs: tuple[str, ...] = ()
    """The features without which this one can't be."""


FEATURES: Mapping[str, Feature] = {
    "namespaces": Feature(
        "a list of namespaces of which some are added and removed, or followed by their label; "
        "with a cache file a second informer reads one of them",
        _namespaces,
    ),
    "shard": Feature("`shard=Shard(...)`, by uid or by namespace", _shard),
    "group": Feature("two members of a `ShardGroup`, of which one leaves and returns", _group),
    "cache file": Feature("a `CacheFile`, and a restart", _several_lives),
    "durable": Feature("a durable handler, followed across the restart", needs=("cache file",)),
    "convert": Feature("`convert=`", _keyword("convert", converted)),
    "model": Feature("`model=`", _keyword("model", Thing)),
    "transform": Feature(
        "`transform=`, which drops objects and cuts the status",
        _transform,
    ),
    "misfits": Feature("objects at which model, conversion and transform raise"),
    "metadata only": Feature("`metadata_only=True`", _keyword("metadata_only", True)),
    "filter": Feature("a filter on a handler, on a stream, and on the controller"),
    "stream": Feature("an `async for` loop over the events"),
    "threads": Feature("handlers and reconcilers with `run_in_thread=True`"),
    "list only": Feature("a role that forbids watches"),
    "verify": Feature("`verify(repair=True)` now and then"),
    "finalizer": Feature(
        "a `Controller` with `finalizer=` and `cleanup=`, which writes a condition"
    ),
    "operator": Feature(
        "two replicas of an `Operator` with an election, of which one leaves and returns",
        _several_replicas,
    ),
}


# -- pairs ---------------------------------------------------------------------------------------


def _pairs(table: Mapping[tuple[str, str], str]) -> Mapping[Pair, str]:
    return {frozenset(names): reason for names, reason in table.items()}


EXCLUDED = _pairs(
    {
        ("shard", "group"): "the members of a group have the shards",
        ("group", "durable"): "`durable=` raises on a group",
        ("convert", "model"): "`informer()` takes one of them",
        ("model", "cache file"): "a model keeps no JSON that a file could have",
        ("model", "durable"): "a durable handler needs a cache file",
        ("model", "finalizer"): "a model keeps no JSON that could show finalizers",
    }
)
"""The pairs that make no sense, with the reason."""

_FEATURES = (4, 5, 6, 7, 8)
"""Features of one history, if as many go together."""


def pairs_in(features: Features) -> set[Pair]:
    """Return the pairs of some features."""
    return set(map(frozenset, combinations(sorted(features), 2)))


def closure(features: Features) -> Features:
    """Return features with those that they need."""
    return features | {need for each in features for need in FEATURES[each].needs}


def all_pairs() -> list[Pair]:
    """Return all pairs but the excluded ones, in the order of the table."""
    pairs = (frozenset(names) for names in combinations(FEATURES, 2))
    return [each for each in pairs if each not in EXCLUDED]


@cache
def selections(number: int) -> tuple[Features, ...]:
    """Draw the features of histories, the same ones each time.

    Each history begins with the pair that came least often, and takes the features in addition
    whose pairs with those came least often.
    """
    return tuple(features for features, _ in zip(_draw(), range(number), strict=False))


def _draw() -> Iterator[Features]:
    drawn, possible = Counter[Pair](), all_pairs()
    fits = {
        each: frozenset(name for pair in possible if each in pair for name in pair)
        for each in FEATURES
    }
    for seed in count():
        chance = Random(f"{seed} selection")
        features = closure(min(possible, key=lambda pair: (drawn[pair], chance.random())))
        wanted = chance.choice(_FEATURES)
        while len(features) < wanted:
            others = sorted(FEATURES.keys() - features)
            common = [name for name in others if features <= fits[name]]
            if not common:
                break
            more = min(common, key=lambda each: (_times(drawn, each, features), chance.random()))
            features = closure(features | {more})
        drawn.update(pairs_in(features))
        yield features


def _times(drawn: Counter[Pair], feature: str, features: Features) -> float:
    return sum(drawn[frozenset((feature, each))] for each in features) / len(features)
