"""A service on aiohttp.web: reads from the cache, probes, and a stream of changes.

python examples/hosts/aiohttp_web.py [PORT]

    curl localhost:8080/pods/default
    curl localhost:8080/readyz
    curl -N localhost:8080/events
"""

import sys
from collections.abc import AsyncGenerator

from aiohttp import web

from aioinformer import Client, EventStream, SharedInformer, SharedInformerFactory
from aioinformer.adapters.asgi import ready

PODS = web.AppKey("pods", SharedInformer)
STREAMS = web.AppKey("streams", set[EventStream])


async def informers(app: web.Application) -> AsyncGenerator[None]:
    """From start to end of the application. It may be left in another task than entered it."""
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        app[PODS] = informers.informer("pods")
        app[STREAMS] = set[EventStream]()
        yield  # it serves before the cache is synced: that is what /readyz is for


async def pods(request: web.Request) -> web.Response:
    """The pods of a namespace. No await, no request to the API server."""
    found = request.app[PODS].lister.list(namespace=request.match_info["namespace"])
    return web.json_response(sorted(pod.name for pod in found))


async def readyz(request: web.Request) -> web.Response:
    """Whether the cache may be read, and why not."""
    wrong = ready([request.app[PODS]])
    return web.json_response({"wrong": wrong}, status=503 if wrong else 200)


async def events(request: web.Request) -> web.StreamResponse:
    """What changes, as it does. Who reads slowly gets fewer events, never the wrong last one."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    streams = request.app[STREAMS]
    async with request.app[PODS].events() as changes:
        streams.add(changes)
        try:
            async for event in changes:
                line = f"event: {type(event).__name__}\ndata: {event.key}\n\n"
                await response.write(line.encode())
        finally:
            streams.discard(changes)
    return response


async def end_streams(app: web.Application) -> None:
    """Before the informers end, aiohttp waits for what it serves: streams would take a minute."""
    for stream in app[STREAMS].copy():
        await stream.aclose()


def create_app() -> web.Application:
    """The application; nothing is asked for before it is run."""
    app = web.Application()
    app.cleanup_ctx.append(informers)
    app.on_shutdown.append(end_streams)
    app.router.add_get("/pods/{namespace}", pods)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/events", events)
    return app


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    web.run_app(create_app(), host="127.0.0.1", port=port)
