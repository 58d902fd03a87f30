"""Types of reads and writes without an informer, for annotations.

``client.api("pods")`` returns a ``ResourceApi``, and its methods return the others.

Example::

    from aioinformer.api import (
        ListKeywords, ObjectList, ObjectWatch, ResourceApi, ResourceList, Scale, ServedResource,
        WatchEvent, WatchKeywords,
    )

    shop: WatchKeywords = {"labels": "app=shop"}
    page: ListKeywords = {**shop, "page_size": 100}
    api: ResourceApi = client.api("pods", namespace="web")
    listed: ObjectList = await api.list(**page)
    assert [pod.name for pod in listed] == ["web-0", "web-1"]

    watch: ObjectWatch = api.watch(listed.resource_version, **shop)
    await api.patch("web-0", {"metadata": {"labels": {"tier": "web"}}})
    async with watch as events:
        async for event in events:
            change: WatchEvent = event
            assert (change.type, change.key.name) == ("MODIFIED", "web-0")
            break

    scale: Scale = await client.api("deployments", namespace="web").scale("shop", 3)
    assert scale.replicas == 3
    found: ResourceList = (await client.discover()).find(kind="Pod")
    served: ServedResource = found[0]
    assert "watch" in (served.verbs or ())
"""

from aioinformer._client.api.read_options import ListKeywords, LogKeywords, WatchKeywords
from aioinformer._client.api.resource_api import ResourceApi
from aioinformer._client.api.subresource_answers import Scale
from aioinformer._client.discovery.documents import ServedResource
from aioinformer._client.discovery.resource_list import ResourceList
from aioinformer._runtime.reading.object_list import ObjectList
from aioinformer._runtime.reading.object_watch import ObjectWatch, WatchEvent

__all__ = [
    "ListKeywords",
    "LogKeywords",
    "ObjectList",
    "ObjectWatch",
    "ResourceApi",
    "ResourceList",
    "Scale",
    "ServedResource",
    "WatchEvent",
    "WatchKeywords",
]
