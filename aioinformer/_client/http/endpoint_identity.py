"""The identity of a cluster, by which a cache file is kept from being used for another one."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from aioinformer._core.cachefile.identity import ClusterIdentity
from aioinformer.errors import FetchError

log = logging.getLogger("aioinformer.client")

IDENTITY_PATH = "/api/v1/namespaces/kube-system"
"""The namespace that each cluster creates once, and whose UID identifies the cluster."""

IDENTITY_SECONDS = 3.0
"""Seconds for the request. A server that doesn't answer must not keep a restored state from the
program; the endpoint identifies the cluster then."""


class _UidMetadata(Struct):
    uid: str = ""


class _Namespace(Struct):
    metadata: _UidMetadata


async def find_cluster_identity(
    get: Callable[[str], Awaitable[bytes]], server: str, tls: ssl.SSLContext | None
) -> ClusterIdentity:
    """Return the identity of a cluster. ``get`` sends a GET and returns the body."""
    uid = ""
    try:
        async with asyncio.timeout(IDENTITY_SECONDS):
            body = await get(IDENTITY_PATH)
        uid = msgspec.json.decode(body, type=_Namespace).metadata.uid
    except (FetchError, TimeoutError, msgspec.MsgspecError, RecursionError) as error:
        log.debug("the UID of kube-system can't be read: %s", error)
    digest = hashlib.sha256(server.encode())
    for certificate in sorted(tls.get_ca_certs(binary_form=True) if tls else []):
        digest.update(certificate)
    return ClusterIdentity(uid, digest.hexdigest())
