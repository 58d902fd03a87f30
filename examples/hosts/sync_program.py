"""A program without asyncio, as Django, Flask and plain threads are: a WSGI service.

python examples/hosts/sync_program.py [PORT]

    curl localhost:8080/default                 # the ConfigMaps of a namespace
    curl -X POST localhost:8080/default/visits  # counts, and answers by the cache

One thread has the event loop in which the informers live; the portal leads into it. Listers are
read from any thread, with no portal and no lock. All else goes through the portal: waiting,
writing, adding handlers. A process that forks (gunicorn, uwsgi) enters this after the fork.
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
"""Enough for as many requests at once for the same ConfigMap: in each round one gets through."""


@dataclass
class Maps:
    """ConfigMaps for the program's threads. In Django or Flask this is a global, or on the app."""

    informer: SharedInformer
    writer: ResourceWriter
    portal: BlockingPortal

    def names(self, namespace: str) -> list[str]:
        """From the cache, in this very thread."""
        return sorted(each.name for each in self.informer.lister.list(namespace=namespace))

    def count(self, key: str) -> str:
        """Write in the event loop's thread, and wait there until the cache shows it."""
        counted = partial(retry_on_conflict, partial(self._visit, key), attempts=ATTEMPTS)
        written = self.portal.call(counted)
        self.portal.call(partial(self.informer.wait_for, written, timeout=5))
        visited: str = written["data"]["visits"]
        return visited

    async def _visit(self, key: str) -> KubeObject:
        """Add one. Other threads and programs do so too: the version that was read must be the
        newest still, or it is a Conflict and begins again.
        """
        try:
            found = (await self.writer.get(key)).to_dict()
        except NotFound:
            namespace, name = key.split("/")
            body = {"metadata": {"name": name, "namespace": namespace}, "data": {"visits": "0"}}
            try:
                found = (await self.writer.create(body)).to_dict()
            except AlreadyExists:
                return await self._visit(key)  # another one was quicker
        found["data"]["visits"] = str(int(found["data"]["visits"]) + 1)
        return await self.writer.update(found)


@contextmanager
def config_maps() -> Generator[Maps]:
    """The whole life of the informers, for a synchronous program."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client.connect()) as client,
        portal.wrap_async_context_manager(SharedInformerFactory(client)) as informers,
    ):
        informer = portal.call(informers.informer, "configmaps")
        portal.call(informers.wait_synced, 30)
        yield Maps(informer, client.api(informer.resource), portal)


def application(maps: Maps) -> Callable[..., Iterable[bytes]]:
    """A WSGI application, whose requests run in threads."""

    def serve(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"].strip("/")
        if environ["REQUEST_METHOD"] == "POST":
            answer = maps.count(path)
        else:
            answer = " ".join(maps.names(path))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [answer.encode()]

    return serve


class Server(ThreadingMixIn, WSGIServer):
    """A thread for each request."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    with (
        suppress(KeyboardInterrupt),
        config_maps() as maps,
        make_server("127.0.0.1", port, application(maps), Server) as server,
    ):
        print(f"http://127.0.0.1:{port}")
        server.serve_forever()
