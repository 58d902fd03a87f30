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
    """Run the informers with the application. One task may enter, and another one leave."""
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        app[PODS] = informers.informer("pods")
        app[STREAMS] = set[EventStream]()
        yield  # the application serves before the cache is synced; /readyz reports it


async def pods(request: web.Request) -> web.Response:
    """Respond with the pods of a namespace, without an await or a request to the API server."""
    found = request.app[PODS].lister.list(namespace=request.match_info["namespace"])
    return web.json_response(sorted(pod.name for pod in found))


async def readyz(request: web.Request) -> web.Response:
    """Respond with 503 and the reasons while the cache can't be read."""
    reasons = ready([request.app[PODS]])
    return web.json_response({"wrong": reasons}, status=503 if reasons else 200)


async def events(request: web.Request) -> web.StreamResponse:
    """Stream the changes. A slow client receives merged events, and never misses the last state."""
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
    """Close the streams first; otherwise aiohttp's shutdown waits a minute for their responses."""
    for stream in app[STREAMS].copy():
        await stream.aclose()


def create_app() -> web.Application:
    """Create the application, which sends no request before it runs."""
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
