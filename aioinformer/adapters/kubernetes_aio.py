"""Settings and models of ``kubernetes.aio``: a ``Client`` with the settings of an ``ApiClient``.

``client_of`` takes over the token, hook, default headers, certificates, proxy and server name. The
hook ``refresh_api_key_hook`` runs before a request as it does in kubernetes.aio, but once for all
requests that wait for it.

A connector or session that the program gave the ``ApiClient`` (``client_session_kwargs``), its
``retries`` and its tracing are not used. The ``load_kube_config`` of kubernetes.aio sets no hook
that renews an exec plugin's token; ``Client.connect()`` renews it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.adapters._client_settings import client_of

__all__ = ["client_of", "model"]

M = TypeVar("M")


def model(kind: type[M]) -> Callable[[KubeObject], M]:
    """Return a function that converts an object to a ``kind`` such as ``V1Pod``, for ``convert=``.

    The cache keeps the objects' JSON. A model is built when a program reads an object, and the last
    models are kept and shared: treat them as read-only. Equal arguments give equal functions, so
    that two parts of a program that ask for the same model share one informer.
    """
    return _FromDictConverter(kind)


@dataclass(frozen=True, slots=True)
class _FromDictConverter:
    kind: Any

    @property
    def __name__(self) -> str:  # part of its informer's name
        return str(self.kind.__qualname__)

    def __repr__(self) -> str:
        return f"model({self.__name__})"

    def __call__(self, obj: KubeObject) -> Any:
        """Return the model of ``obj``; raise what kubernetes.aio raises."""
        return self.kind.from_dict(obj.to_dict())
