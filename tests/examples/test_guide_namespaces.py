"""The code of the guide on several namespaces, as a reader would run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aioinformer import Deleted, Event, Scope, SharedInformer, SharedInformerFactory, where
from aioinformer.testing import Cluster, ClusterSource
from tests.markdown_pages import MarkdownPage
from tests.runtime.scripted_source import wait_until

GUIDE = MarkdownPage(Path(__file__).parents[2] / "examples" / "guides" / "namespaces.md")


def cluster_with_pods(*namespaces: str) -> Cluster:
    cluster = Cluster()
    for name in namespaces:
        labels = {"team": "shop"} if name in ("shop", "cart") else {}
        cluster.create("namespaces", {"metadata": {"name": name, "labels": labels}})
        metadata = {"name": "web", "labels": {"app": name}}
        cluster.create("pods", {"metadata": metadata}, namespace=name)
    return cluster


async def test_the_requests_of_the_guide_make_informers() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("shop", "cart"))) as informers:
        exec(GUIDE.block("legacy"), {"informers": informers})  # noqa: S102 - what it is for
        await informers.wait_synced(30)
        found: dict[str, SharedInformer] = {each.name: each for each in informers}
        assert list(found) == [
            "pods in cart, shop",
            "services in cart, shop where tier=web",
            "jobs.batch in legacy, shop",
            "namespaces",
            "configmaps in namespaces labelled('team=shop')",
        ]
        followed = found["configmaps in namespaces labelled('team=shop')"]
        assert followed.namespaces == ("cart", "shop")


async def test_namespaces_are_added_and_removed_as_the_guide_does(capsys: Any) -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("shop", "cart"))) as informers:
        names: dict[str, Any] = {"informers": informers, "Scope": Scope}
        removed: list[str] = []
        pods = informers.informer("pods", namespaces=["shop"])
        await informers.wait_synced(30)

        def deleted(event: Event) -> None:
            if isinstance(event, Deleted):
                removed.append(f"{event.obj.key} {event.reason}")

        # An object that leaves before the handler has it is not delivered at all.
        await pods.add_handler(deleted).wait_synced(30)

        exec(GUIDE.block("remove_namespace"), names)  # noqa: S102 - what it is for
        assert names["pods"] is pods
        assert capsys.readouterr().out == "('cart',)\n"
        await wait_until(lambda: removed == ["shop/web scope_removed"])
        await pods.wait_until("cart/web", lambda pod: pod is not None, timeout=10)


async def test_another_predicate_selects_namespaces_too() -> None:
    cluster = cluster_with_pods("a", "b", "c")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", namespaces=where("metadata.name", "a", "b"))
        await informers.wait_synced(30)
        assert pods.namespaces == ("a", "b")
