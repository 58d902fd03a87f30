"""The end of event feeds at the signal that ends a server: chained signal handlers.

A server ends the lifespan of an application after all responses have ended, and an event stream
does not end by itself. ASGI has no message for "the server begins to shut down", so that the signal
is the only notice that every server receives before it waits for responses.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import FrameType
from typing import Protocol

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
)
"""The signals that ASGI servers handle as a request to shut down; SIGBREAK exists on Windows."""

SignalHandler = Callable[[int, FrameType | None], object]


class Closeable(Protocol):
    """An object with a ``close`` method that ends its responses, such as an ``EventFeed``."""

    def close(self) -> None:
        """End every response. The method is called in the event loop, possibly more than once."""


def closing_on_signals(*feeds: Closeable) -> AbstractContextManager[None]:
    """Close event feeds at the first SIGINT or SIGTERM, before the server waits for responses.

    Enter the context in the lifespan of the application::

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            async with Client.connect() as client, SharedInformerFactory(client) as informers:
                informers.informer("pods")
                with closing_on_signals(feed):
                    yield

    The context manager chains signal handlers: each one schedules ``close`` in the running event
    loop, then calls the handler of the server. At the end of the context, the handlers of the
    server are restored. A signal that the server doesn't handle keeps its default action.

    There is no effect outside of the main thread, where Python permits no signal handlers
    (starlette's ``TestClient``, which ends a stream by disconnecting), nor if the server installs
    its handlers after the start of the lifespan, or ends its worker processes without a signal, as
    hypercorn does with ``--workers 1`` and more. (uvicorn, uvicorn with ``--workers`` or
    ``--reload``, gunicorn, and hypercorn with ``--workers 0`` are tried.)

    Raises:
        RuntimeError: no event loop is running.
    """
    return _closing_on_signals(asyncio.get_running_loop(), feeds)


@contextmanager
def _closing_on_signals(
    loop: asyncio.AbstractEventLoop, feeds: tuple[Closeable, ...]
) -> Generator[None]:
    def close() -> None:
        for feed in feeds:
            feed.close()

    def schedule() -> None:
        with suppress(RuntimeError):  # the loop has been closed, and so have its responses
            loop.call_soon_threadsafe(close)

    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                stack.enter_context(_chained(number, schedule))
        yield


@contextmanager
def _chained(number: int, action: Callable[[], None]) -> Generator[None]:
    """Call ``action`` before the present handler of a signal, until the context ends."""
    previous = signal.getsignal(number)
    # SIG_DFL ends the process at once, and SIG_IGN means that no shutdown follows.
    if not callable(previous):
        yield
        return
    handle = _make_handler(previous, action)
    signal.signal(number, handle)
    try:
        yield
    finally:
        # A handler that was installed later calls ``handle``, so restoring would remove that one.
        if signal.getsignal(number) is handle:
            signal.signal(number, previous)


def _make_handler(previous: SignalHandler, action: Callable[[], None]) -> SignalHandler:
    def handle(number: int, frame: FrameType | None) -> None:
        action()
        previous(number, frame)  # may raise, as Python's own handler of SIGINT does

    return handle
