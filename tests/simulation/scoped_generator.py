"""Draw a plan of one informer of several namespaces, which come and go, as do permissions.

Each namespace has a selector of its own. A namespace may be removed and added again, at once or
later, with the same selector or another one. It may be deleted: its objects go, and requests are
answered with 403 until it is created again. A Role may allow lists but no watches, or nothing for
some minutes. ``draw_followed`` draws an informer that follows the labels of namespaces instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from tests.simulation.fault_generator import draw_faults
from tests.simulation.generator import BEFORE, draw_listeners, draw_writes, with_server
from tests.simulation.plan import (
    FOLLOWED_TEAM,
    NAMESPACE_INFORMER,
    NAMESPACES,
    SPAN,
    AddScope,
    Fault,
    InformerSpec,
    NamespaceStep,
    Plan,
    Put,
    Remove,
    RemoveScope,
    ScopeSpec,
    ServerStep,
    Step,
)

NAME = "scoped"
"""The name of the informer."""
WRITES = 250


def draw_scoped(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = Random(f"{seed} scopes")
    scopes = [_draw_scope(chance, name) for name in NAMESPACES]
    first = chance.sample(scopes, chance.choice((1, 2, 3, 3)))
    spec = InformerSpec(
        name=NAME,
        scopes=tuple(first),
        resync=chance.choice((0.0, 0.0, 300.0)),
        page_size=chance.choice((0, 7)),
        high_mark=chance.choice((8, 64, 10_000)),
        watch_list=chance.random() < 0.6,
        transform=chance.choice(("", "", "cuts")),
    )
    writes = draw_writes(chance, raising_index=False, most=WRITES)
    moments = [write.at for write in writes if isinstance(write, Put | Remove)]
    steps: list[Step] = [
        *writes,
        *draw_faults(chance, [connection(name) for name in NAMESPACES], moments),
        *draw_listeners(chance, [NAME], moments),
        *_draw_changes(chance, Random(f"{seed} selectors"), scopes, moments),
        *_draw_roles(chance, moments),
        *_draw_deletion(chance, writes),
    ]
    plan = Plan(seed=seed, informers=(spec,), steps=tuple(sorted(steps, key=lambda step: step.at)))
    return with_server(chance, plan, costs=(0.0, 0.002, 0.01))


def draw_followed(seed: int) -> Plan:
    """Return the plan of a seed for an informer that follows namespaces by their labels."""
    chance = Random(f"{seed} followed")
    spec = InformerSpec(
        name=NAME,
        follows=True,
        app=chance.choice(("", "", "shop")),
        resync=chance.choice((0.0, 300.0)),
        page_size=chance.choice((0, 7)),
        high_mark=chance.choice((64, 10_000)),
        watch_list=chance.random() < 0.6,
    )
    drawn = draw_writes(chance, raising_index=False, most=WRITES // 2)
    writes = [each for each in drawn if isinstance(each, Put | Remove)]
    moments = [write.at for write in writes]
    targets = [NAMESPACE_INFORMER, *map(connection, NAMESPACES)]
    steps: list[Step] = [
        *writes,
        *draw_faults(chance, targets, moments),
        *draw_listeners(chance, [NAME], moments),
        *_draw_labels(chance, moments),
    ]
    return Plan(
        seed=seed,
        informers=(spec,),
        steps=tuple(sorted(steps, key=lambda step: step.at)),
        window=chance.choice((60, 1000)),
        watch_list=chance.random() < 0.85,
        cost=chance.choice((0.0, 0.002, 0.01)),
    )


def _draw_labels(chance: Random, moments: Sequence[float]) -> Iterator[NamespaceStep]:
    """Draw namespaces that match or not, whose labels change, or that are created again."""
    teams = (FOLLOWED_TEAM, FOLLOWED_TEAM, "blog")
    for name in NAMESPACES:
        yield NamespaceStep(BEFORE, name, chance.choice(teams))
    for _ in range(chance.randrange(3, 9)):
        name, at = chance.choice(NAMESPACES), max(1.0, chance.choice(moments)) + 0.001
        team = chance.choice((*teams, None, None))
        yield NamespaceStep(at, name, team)
        if team is None and chance.random() < 0.8:
            again = at + chance.choice((0.0, 0.001, 1.0, 60.0))
            yield NamespaceStep(again, name, chance.choice(teams))


def connection(namespace: str) -> str:
    """Return the name that faults have for a namespace of the informer."""
    return f"{NAME} ({namespace})"


def _draw_scope(chance: Random, namespace: str) -> ScopeSpec:
    return ScopeSpec(namespace, chance.choice(("", "", "shop")), chance.random() < 0.3)


def _draw_changes(
    chance: Random, selectors: Random, scopes: Sequence[ScopeSpec], moments: Sequence[float]
) -> Iterator[AddScope | RemoveScope]:
    """Draw namespaces that the informer ceases to read, and reads again, some with others' apps."""
    for _ in range(chance.randrange(1, 5)):
        scope, at = chance.choice(scopes), chance.choice(moments) + 0.001
        again = at + chance.choice((0.0, 0.001, 1.0, 60.0, 300.0))
        if chance.random() < 0.8:
            yield RemoveScope(at, NAME, scope.namespace)
        app = selectors.choice((scope.app, "", "shop", "blog"))
        yield AddScope(again, NAME, replace(scope, app=app))


def _draw_roles(chance: Random, moments: Sequence[float]) -> Iterator[Fault]:
    """Draw a Role without watches, from the start or later, and one that is taken for a while."""
    lists_only, none = (connection(each) for each in chance.sample(NAMESPACES, 2))
    code = chance.choice((403, 403, 404, 405))
    if chance.random() < 0.6:
        lasting = chance.choice((300.0, SPAN))
        begins = chance.choice((-1.0, chance.choice(moments)))
        yield Fault(
            at=begins, kind="watch_refused", amount=code, lasting=lasting, target=lists_only
        )
        yield Fault(at=begins, kind="end", target=lists_only)
    if chance.random() < 0.6:
        begins, lasting = (
            chance.choice((-1.0, chance.choice(moments))),
            chance.choice((60.0, 300.0)),
        )
        yield from _refuse(none, begins, lasting)


def _refuse(target: str, begins: float, lasting: float) -> Iterator[Fault]:
    """Refuse all requests for a while, also those that are open."""
    yield Fault(at=begins, kind="status", amount=403, lasting=lasting, target=target)
    yield Fault(at=begins, kind="end", target=target)


def _draw_deletion(chance: Random, writes: Sequence[Step]) -> Iterator[Remove | Fault]:
    """Draw the deletion of a namespace with all objects; the next write there creates it again."""
    if chance.random() < 0.5 or any(isinstance(each, ServerStep) for each in writes):
        return
    deleted, last = chance.choice(NAMESPACES), chance.randrange(50, WRITES)
    keys = {
        each.name: isinstance(each, Put)
        for each in writes[:last]
        if isinstance(each, Put | Remove) and each.namespace == deleted
    }
    at = max(0.0, writes[last].at)
    for name in sorted(name for name, there in keys.items() if there):
        yield Remove(at, deleted, name)
    yield from _refuse(connection(deleted), at, chance.choice((1.0, 10.0, 60.0)))
