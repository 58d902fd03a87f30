"""Models of the generated clients as what programs see of cached objects."""

from __future__ import annotations

import datetime as dt
from contextlib import aclosing
from typing import Any

from kubernetes.aio.client import V1Pod as AioPod
from kubernetes_asyncio.client import ApiClient, V1Namespace, V1Pod

from aioinformer import SharedInformerFactory
from aioinformer.adapters import kubernetes_aio, kubernetes_asyncio
from aioinformer.testing import Cluster, ClusterSource

POD: dict[str, Any] = {
    "metadata": {"name": "web-0", "labels": {"app": "shop"}},
    "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]},
}


def informers() -> SharedInformerFactory:
    """Of a cluster with one pod."""
    cluster = Cluster()
    cluster.create("pods", POD)
    return SharedInformerFactory(ClusterSource(cluster))


class Api(ApiClient):
    """One that ``aclosing`` closes."""

    async def aclose(self) -> None:
        await self.close()


async def test_an_informer_shows_models_of_kubernetes_asyncio() -> None:
    async with aclosing(Api()) as api, informers() as factory:
        convert = kubernetes_asyncio.model(V1Pod, api)
        pods = factory.informer("pods", convert=convert)
        await factory.wait_synced(timeout=30)
        pod = pods.lister["default/web-0"]

        assert pods.name == "pods as V1Pod"
        assert isinstance(pod, V1Pod)
        assert (pod.kind, pod.api_version) == ("Pod", "v1")
        assert pod.spec.containers[0].image == "web:1"
        assert isinstance(pod.metadata.creation_timestamp, dt.datetime)
        assert pods.lister.list(labels="app=shop") == [pod]
        again = kubernetes_asyncio.model(V1Pod, api)
        assert factory.informer("pods", convert=again) is pods
        assert len({again, kubernetes_asyncio.model(V1Namespace, api)}) == 2


async def test_an_informer_shows_models_of_kubernetes_aio() -> None:
    async with informers() as factory:
        pods = factory.informer("pods", convert=kubernetes_aio.model(AioPod))
        await factory.wait_synced(timeout=30)
        pod = pods.lister["default/web-0"]

    assert pods.name == "pods as V1Pod"
    assert pod.kind == "Pod"
    assert pod.spec is not None
    assert pod.spec.containers[0].image == "web:1"
    assert kubernetes_aio.model(AioPod) == kubernetes_aio.model(AioPod)
