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

from aioinformer import Client, KubeObject, ResourceWriter, SharedInformer, SharedInformerFactory
from aioinformer.errors import NotFound


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
        """Write in the event loop's thread, wait there until the cache shows it, then read here."""
        try:
            before = self.portal.call(self.writer.get, key)
        except NotFound:
            namespace, name = key.split("/")
            body = {"metadata": {"name": name, "namespace": namespace}, "data": {"visits": "1"}}
            self._wait_for(self.portal.call(self.writer.create, body))
        else:
            visits = str(int(before["data"]["visits"]) + 1)
            self._wait_for(self.portal.call(self.writer.patch, key, {"data": {"visits": visits}}))
        visited: str = self.informer.lister[key]["data"]["visits"]
        return visited

    def _wait_for(self, written: KubeObject) -> None:
        self.portal.call(partial(self.informer.wait_for, written, timeout=5))


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
        yield Maps(informer, client.writer(informer.resource), portal)


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
