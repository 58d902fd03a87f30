"""``Resolver``: the addresses of a host name, and the order in which they are tried.

A name is looked up in a thread of its own: the program may have filled the threads of the event
loop, and a lease must be renewed all the same. If a name has several addresses, an address whose
new connection has failed is tried last for ``AVOIDANCE`` seconds. Without that, an address that
accepts connections and does not answer, or answers 503, would be chosen again and again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextvars import ContextVar
from functools import partial
from typing import TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.token_refresh import SingleFlight

LOOKUP_LIFETIME = 10.0
"""Seconds for which the addresses of a name are used before it is looked up again."""

AVOIDANCE = 300.0
"""Seconds for which other addresses precede one that has failed. A try of a server that does not
answer takes more than a minute."""

Address: TypeAlias = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
]
"""One result of ``getaddrinfo``: family, kind, protocol, canonical name, address."""

HostAndPort: TypeAlias = tuple[str, int]

opened_addresses: ContextVar[list[str]] = ContextVar("opened_addresses")
"""The addresses to which the current request opens connections: none if it uses an open one."""


class Resolver(AbstractResolver):
    def __init__(self) -> None:
        self._lookups: dict[HostAndPort, SingleFlight[list[ResolveResult]]] = {}
        self._found: dict[HostAndPort, list[ResolveResult]] = {}
        self._found_at: dict[HostAndPort, float] = {}
        self._failed_at: dict[str, float] = {}

    @property
    def has_choice(self) -> bool:
        """True if a name has several addresses."""
        return any(len(each) > 1 for each in self._found.values())

    def avoid(self, addresses: Iterable[str]) -> None:
        """Try these addresses last, because a new connection to them has failed."""
        now = asyncio.get_running_loop().time()
        self._failed_at |= dict.fromkeys(addresses, now)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host, that whose failure is longest ago before others.

        Raises:
            OSError: the name is not known, or no server of names answers.
            NotRunning: the client was closed meanwhile.
        """
        name, now, never = (host, port), asyncio.get_running_loop().time(), float("-inf")
        if now - self._found_at.get(name, never) >= LOOKUP_LIFETIME:
            look_up = partial(self._look_up, name)
            await self._lookups.setdefault(name, SingleFlight(look_up, name=f"look-up of {host}"))()
        self._failed_at = {k: at for k, at in self._failed_at.items() if now - at < AVOIDANCE}
        return sorted(self._found[name], key=lambda each: self._failed_at.get(each["host"], never))

    async def _look_up(self, name: HostAndPort) -> list[ResolveResult]:
        self._found[name] = await run_in_thread(partial(_find_addresses, *name))
        self._found_at[name] = asyncio.get_running_loop().time()
        return self._found[name]

    async def close(self) -> None:
        for each in self._lookups.values():
            await each.aclose()


def _find_addresses(host: str, port: int) -> list[ResolveResult]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:
        reason = "a part of it is empty or too long"
        raise socket.gaierror(socket.EAI_NONAME, reason) from error
    # The numeric form of a link-local address names the network interface.
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, numeric)[0],
            port=port,
            family=family,
            proto=protocol,
            flags=socket.AI_NUMERICHOST,
        )
        for family, _, protocol, _, address in found
    ]
