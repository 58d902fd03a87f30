"""``sent_once``: keeps aiohttp from sending a write a second time.

When a connection that was used before breaks, aiohttp sends idempotent requests once more, on a
new one, and takes PUT and DELETE for such. To Kubernetes they are not: a PUT that was done the
first time is a Conflict the second time, a DELETE is a 404, or hits what was created meanwhile.
The program has to know that it doesn't know.
"""

from __future__ import annotations

import aiohttp

__all__ = ["SentOnce", "sent_once"]


class SentOnce(Exception):
    """No error of its own: carries a failure past aiohttp, which sends again after some."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(type(error).__name__)
        self.error = error


async def sent_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A middleware of aiohttp's: send it, and let no failure be a reason to do so again.

    Raises:
        SentOnce: the connection broke; wraps what aiohttp says of it.
    """
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise SentOnce(error) from error
