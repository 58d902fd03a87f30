"""A ``Client`` with the settings of a ready-made ``kubernetes.aio.client.ApiClient``.

Token, hook, default headers, certificates, proxy and server name are taken from it. Its hook,
``refresh_api_key_hook``, is run before a request as it would be there, but once for all requests
that wait for it.

A connector or session that the program gave it (``client_session_kwargs``), its ``retries`` and
its tracing are not used: connections are our own, and trying again is the informer's business.
Its ``load_kube_config`` sets no hook that renews an exec plugin's token; ``Client.connect()``
renews it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer._client.client import Client
from aioinformer._client.http.transport import Timeouts
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.adapters._client_settings import EMPTY, GeneratedClient
from aioinformer.adapters._client_settings import client_of as client_of_ready_made

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

__all__ = ["client_of", "model"]

M = TypeVar("M")


def client_of(
    api: ApiClient,
    *,
    headers: Mapping[str, str] = EMPTY,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
) -> Client:
    """A client with the settings of ``api``. Enter it with ``async with``.

    ``api`` stays the program's: it is not closed, and not used for requests.

    Args:
        api: the ready-made client of kubernetes.aio.
        headers: headers to add to its default ones.
        timeouts: as for ``Client``.
        limits: as for ``Client``.

    Raises:
        ValueError: a header has a control character in it.
    """
    ready = GeneratedClient(api)
    return client_of_ready_made(
        ready, headers={**ready.headers, **headers}, timeouts=timeouts, limits=limits
    )


def model(kind: type[M]) -> Callable[[KubeObject], M]:
    """What makes a ``kind``, such as ``V1Pod``, of an object: for ``convert=``.

    The cache keeps the objects' JSON; a model is built when somebody looks at an object, and the
    last ones are kept and shared: treat them as read-only. For the same model it is the same
    function, so that two parts of a program that ask for it share one informer.

    Args:
        kind: the model class of kubernetes.aio.
    """
    return _FromDictConverter(kind)


@dataclass(frozen=True, slots=True)
class _FromDictConverter:
    kind: Any

    @property
    def __name__(self) -> str:  # what its informer is called by
        return str(self.kind.__qualname__)

    def __repr__(self) -> str:
        return f"model({self.__name__})"

    def __call__(self, obj: KubeObject) -> Any:
        """The model of ``obj``; raises what the library raises."""
        return self.kind.from_dict(obj.to_dict())
