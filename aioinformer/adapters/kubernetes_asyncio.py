"""Settings and models of kubernetes_asyncio: a ``Client`` with the settings of an ``ApiClient``.

``client_of`` takes over the token, hook, default headers, certificates, proxy and server name. The
hook ``refresh_api_key_hook`` runs before a request as it does in kubernetes_asyncio, but once for
all requests that wait for it.

``load_kube_config`` sets no hook that renews an exec plugin's token: a program that relies on it
receives ``Unauthorized`` when the token expires. ``Client.connect()`` renews the token.
Certificates inside a kubeconfig are written to temporary files, which kubernetes_asyncio removes
when the process ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer._core.codec.shape import with_type_meta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.adapters._client_settings import client_of

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

__all__ = ["client_of", "model"]

M = TypeVar("M")


def model(kind: type[M], api: ApiClient) -> Callable[[KubeObject], M]:
    """Return a function that converts an object to a ``kind`` such as ``V1Pod``, for ``convert=``.

    The cache keeps the objects' JSON. An object is deserialized by ``api``, without a request, when
    a program reads it, which takes a millisecond or more for a pod, and the last models are kept
    and shared: treat them as read-only. Equal arguments give equal functions, so that two parts of
    a program that ask for the same model share one informer.
    """
    return _DeserializeConverter(kind, api)


@dataclass(frozen=True, slots=True)
class _DeserializeConverter:
    kind: Any
    api: Any

    @property
    def __name__(self) -> str:  # part of its informer's name
        return str(self.kind.__qualname__)

    def __repr__(self) -> str:
        return f"model({self.__name__})"

    def __call__(self, obj: KubeObject) -> Any:
        """Return the model of ``obj``; raise what kubernetes_asyncio raises."""
        return self.api.deserialize(SimpleNamespace(data=with_type_meta(obj)), self.kind)
