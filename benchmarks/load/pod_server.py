"""A server of pods in this process, for measurements of one informer at rest or at a steady rate.

The server sends every client the same list of pods. A watch waits until the server is told to send
changes, and then receives them at a steady rate. ``POST /go`` begins the changes, and
``POST /pause`` ends them until the next ``POST /go``.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

__all__ = ["Command", "PodServer", "post"]

Command = Literal["go", "pause"]

NO_WATCH_LIST = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid",'
    b'"message":"sendInitialEvents is forbidden for watch","code":422}'
)
"""The answer of an API server without WatchLists."""


class PodServer:
    """Serves one list, and changes at a steady rate while they are asked for."""

    def __init__(self, pods: Sequence[bytes], changes: Iterable[bytes], rate: float) -> None:
        """Listen on a free port.

        Args:
            pods: the pods of the list.
            changes: the lines of the watch, for one client.
            rate: lines a second.
        """
        self._pods = list(pods)
        self._changes = changes
        self._rate = rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._changing = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            try:
                while line := requests.readline():
                    while requests.readline().strip():
                        pass
                    self._answer(connection, line.decode().split()[1])
            except OSError:
                pass  # the client has closed the connection

    def _answer(self, connection: socket.socket, target: str) -> None:
        if target in ("/go", "/pause"):
            if target == "/go":
                self._changing.set()
            else:
                self._changing.clear()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return
        if "sendInitialEvents=" in target:  # client-go lists then
            connection.sendall(
                b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(NO_WATCH_LIST), NO_WATCH_LIST)
            )
            return
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

        def send(data: bytes) -> None:
            connection.sendall(b"%x\r\n%b\r\n" % (len(data), data))

        if "watch=" in target:
            self._send_changes(send)
        else:
            self._send_list(send)
            connection.sendall(b"0\r\n\r\n")

    def _send_list(self, send: Callable[[bytes], None]) -> None:
        send(
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"20000000"},"items":['
        )
        for number, pod in enumerate(self._pods):
            send(pod if number == 0 else b"," + pod)
        send(b"]}\n")

    def _send_changes(self, send: Callable[[bytes], None]) -> None:
        due = 0.0
        for line in self._changes:
            if not self._changing.is_set():
                self._changing.wait()
                due = time.monotonic()
            time.sleep(max(due - time.monotonic(), 0))
            due += 1 / self._rate
            send(line)
        threading.Event().wait()  # the watch stays open without changes


def post(server: str, command: Command) -> None:
    """Tell the server with this URL to begin or to pause the changes."""
    host, _, port = server.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /%b HTTP/1.1\r\nHost: x\r\n\r\n" % command.encode())
        connection.recv(100)
