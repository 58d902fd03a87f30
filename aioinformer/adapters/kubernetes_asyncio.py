"""A ``Client`` with the settings of a ready-made ``kubernetes_asyncio.client.ApiClient``.

Token, hook, default headers, certificates, proxy and server name are taken from it. Its hook,
``refresh_api_key_hook``, is run before a request as it would be there, but once for all requests
that wait for it.

``load_kube_config`` sets no hook that renews an exec plugin's token: a program that relies on it
sees ``Unauthorized`` when that expires. ``Client.connect()`` renews it. Certificates inside a
kubeconfig are in temporary files that kubernetes_asyncio removes when the process ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aioinformer._client.client import Client
from aioinformer._client.transport import Timeouts
from aioinformer._core.rates import Limits
from aioinformer.adapters.generated import Generated
from aioinformer.adapters.ready_made import NOTHING
from aioinformer.adapters.ready_made import client_of as client_of_ready_made

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

__all__ = ["client_of"]


def client_of(
    api: ApiClient,
    *,
    headers: Mapping[str, str] = NOTHING,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
) -> Client:
    """A client with the settings of ``api``. Enter it with ``async with``.

    ``api`` stays the program's: it is not closed, and not used for requests.

    Args:
        api: the ready-made client of kubernetes_asyncio.
        headers: headers to add to its default ones.
        timeouts: as for ``Client``.
        limits: as for ``Client``.

    Raises:
        ValueError: a header has a control character in it.
    """
    ready = Generated(api)
    return client_of_ready_made(
        ready, headers={**ready.headers, **headers}, timeouts=timeouts, limits=limits
    )
