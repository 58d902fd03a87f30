"""The source of an informer of several namespaces: selectors, and the namespaces to follow."""

from __future__ import annotations

from itertools import product

from aioinformer import Scope, SharedInformer, labelled
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.selectors.scopes import NamespaceSelection
from aioinformer._runtime.scopes.scoped_source import ScopedSource
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import names, running_informer
from tests.runtime.scripted_source import PODS

NAMESPACES = find_built_in("namespaces")


def shop() -> Cluster:
    """Return a cluster with pods of two applications in two namespaces."""
    cluster = Cluster()
    for namespace, app, node in product(("shop", "other"), ("web", "mail"), ("one", "two")):
        labels = {"app": app}
        name = f"{app}-{node}" if namespace == "shop" else f"other-{app}-{node}"
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node}}
        cluster.create("pods", body, namespace=namespace)
    return cluster


def read(scope: Scope, *, labels: str = "", fields: str = "") -> list[str]:
    """Return the names of the pods that an informer reads in ``shop``."""
    selection = NamespaceSelection.parse({"shop": scope}, labels=labels, fields=fields)
    source = ScopedSource.of(ClusterSource(shop()), PODS, selection, None)

    async def main() -> list[str]:
        async with running_informer(SharedInformer(source.open("shop", scope))) as informer:
            return names(informer.lister.list())

    assert dict(source.scopes) == dict(selection.scopes)
    assert source.followed is None
    return run(main(), seed=1)


def test_a_namespace_without_selectors_has_those_of_the_informer() -> None:
    assert read(Scope(), labels="app=web", fields="spec.nodeName=one") == ["web-one"]


def test_a_selector_of_a_namespace_takes_the_place_of_the_informers() -> None:
    assert read(Scope(labels="app=mail"), labels="app=web", fields="spec.nodeName=one") == [
        "mail-one"
    ]
    assert read(Scope(fields="spec.nodeName=two"), labels="app=web") == ["web-two"]


def test_namespaces_are_followed_only_by_a_predicate_with_an_informer_of_namespaces() -> None:
    source = ClusterSource(Cluster())
    namespaces = SharedInformer(source.lister_watcher(NAMESPACES))
    named = NamespaceSelection.parse(["shop"], labels="", fields="")
    matching = NamespaceSelection.parse(labelled("team=shop"), labels="app=web", fields="")

    assert ScopedSource.of(source, PODS, named, namespaces).followed is None
    assert ScopedSource.of(source, PODS, matching, None).followed is None
    followed = ScopedSource.of(source, PODS, matching, namespaces).followed
    assert followed is not None
    assert followed.informer is namespaces
    assert followed.predicate is matching.predicate
    assert followed.scope.label_selector == "app=web"
