"""Types of reads and writes without an informer, for annotations.

``client.api("pods")`` returns a ``ResourceApi``, and its methods return the others::

    api = client.api("pods", namespace="web")
    pods = await api.list(labels="app=shop")                # ObjectList
    async with api.watch(pods.resource_version) as events:  # ObjectWatch
        async for event in events:                          # WatchEvent
            print(event.type, event.key)
    await client.api("deployments", namespace="web").scale("shop", 3)  # Scale
    (await client.discover()).find(category="all")          # ResourceList
"""

from aioinformer._client.api.read_options import ListKeywords, LogKeywords, WatchKeywords
from aioinformer._client.api.resource_api import ResourceApi
from aioinformer._client.api.subresources import Scale
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
