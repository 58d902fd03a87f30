"""A WSGI service: informers in a program without asyncio, such as Django, Flask or plain threads.

python examples/hosts/sync_program.py [PORT]

    curl localhost:8080/default                 # the ConfigMaps of a namespace
    curl -X POST localhost:8080/default/visits  # counts, and responds from the cache

One thread runs the event loop of the informers. Other threads call into the loop through the
portal: to wait, to write, to add handlers. Any thread reads listers without the portal and without
a lock. A process that forks (gunicorn, uwsgi) must enter this after the fork.
"""

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIServer, make_server

from anyio.from_thread import BlockingPortal, start_blocking_portal

from aioinformer import (
    Client,
    KubeObject,
    ResourceWriter,
    SharedInformer,
    SharedInformerFactory,
    retry_on_conflict,
)
from aioinformer.errors import AlreadyExists, NotFound

ATTEMPTS = 50
"""Attempts of one write. With so many concurrent requests for one ConfigMap, each round lets one
succeed."""


@dataclass
class Maps:
    """ConfigMaps for the program's threads; in Django or Flask a global, or a part of the app."""

    informer: SharedInformer
    writer: ResourceWriter
    portal: BlockingPortal

    def names(self, namespace: str) -> list[str]:
        """Return the names in a namespace from the cache, in the calling thread."""
        return sorted(each.name for each in self.informer.lister.list(namespace=namespace))

    def count(self, key: str) -> str:
        """Write in the event loop's thread, and wait there until the cache has the write."""
        write = partial(retry_on_conflict, partial(self._visit, key), attempts=ATTEMPTS)
        written = self.portal.call(write)
        self.portal.call(partial(self.informer.wait_for, written, timeout=5))
        visits: str = written["data"]["visits"]
        return visits

    async def _visit(self, key: str) -> KubeObject:
        """Add one visit. Raises Conflict if another thread or program has written meanwhile."""
        try:
            found = (await self.writer.get(key)).to_dict()
        except NotFound:
            namespace, name = key.split("/")
            body = {"metadata": {"name": name, "namespace": namespace}, "data": {"visits": "0"}}
            try:
                found = (await self.writer.create(body)).to_dict()
            except AlreadyExists:
                return await self._visit(key)  # another writer has created it
        found["data"]["visits"] = str(int(found["data"]["visits"]) + 1)
        return await self.writer.update(found)


@contextmanager
def config_maps() -> Generator[Maps]:
    """Run the informers for the length of a block of a synchronous program."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client.connect()) as client,
        portal.wrap_async_context_manager(SharedInformerFactory(client)) as informers,
    ):
        informer = portal.call(informers.informer, "configmaps")
        portal.call(informers.wait_synced, 30)
        yield Maps(informer, client.api(informer.resource), portal)


def application(maps: Maps) -> Callable[..., Iterable[bytes]]:
    """Return a WSGI application, whose requests run in threads."""

    def serve(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"].strip("/")
        if environ["REQUEST_METHOD"] == "POST":
            body = maps.count(path)
        else:
            body = " ".join(maps.names(path))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [body.encode()]

    return serve


class Server(ThreadingMixIn, WSGIServer):
    """A WSGI server with a thread for each request."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    with (
        suppress(KeyboardInterrupt),
        config_maps() as maps,
        make_server("127.0.0.1", port, application(maps), Server) as server,
    ):
        print(f"http://127.0.0.1:{port}")
        server.serve_forever()
