"""A load server, which sends the files of a dataset as fast as the kernel copies them.

    python -m benchmarks.load.server FOLDER

The server implements just enough HTTP to act as an API server with one resource: a list, a watch,
and a watch that begins with the state (``sendInitialEvents``), each as JSON or protobuf. The answer
to a list with ``limit`` is a page if the dataset has pages of that size, except with
``resourceVersion=0``, where API servers ignore the limit too. The server
must never limit a measurement, so it is a process of its own, with a blocking thread a connection
and ``sendfile``. ``POST /go`` starts the events of the watch. ``POST /expire`` ends the watch with
410, and later lists contain another state; after ``POST /forget``, which ends the watch too, they
contain the same state. The first line that the server prints is its port.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

__all__ = ["CONTENT_TYPES", "JSON", "LoadServer", "begin", "rate"]

JSON, PROTOBUF = "json", "pb"
CONTENT_TYPES = {
    (JSON, "list"): "application/json",
    (JSON, "watch"): "application/json",
    (PROTOBUF, "list"): "application/vnd.kubernetes.protobuf",
    (PROTOBUF, "watch"): "application/vnd.kubernetes.protobuf;stream=watch",
}
EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)
VERSION = b'{"major":"1","minor":"37","gitVersion":"v1.37.0"}'
"""The answer to ``/version``, which kr8s reads first."""
VERSION_HEAD = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(VERSION)


class LoadServer:
    """Serves one dataset to one client."""

    def __init__(self, folder: Path) -> None:
        """Listen on a free port; call ``run`` to serve."""
        self._folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._go = threading.Event()
        self._expired = threading.Event()
        self._changed = False

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        port: int = self._listener.getsockname()[1]
        return port

    def run(self) -> None:
        """Serve until the process ends."""
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            try:
                while line := requests.readline():
                    headers: list[bytes] = []
                    while (header := requests.readline()).strip():
                        headers.append(header.lower())
                    self._answer(connection, line.decode(), headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a client may close the connection before the end of a response

    def _answer(self, connection: socket.socket, line: str, headers: list[bytes]) -> None:
        method, target, _ = line.split()
        protobuf = any(each.startswith(b"accept:") and b"protobuf" in each for each in headers)
        form = PROTOBUF if protobuf else JSON
        if method == "POST":
            self._changed = self._changed or target == "/expire"
            (self._go if target == "/go" else self._expired).set()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        elif "watch=" in target:
            self._watch(connection, form, initial="sendInitialEvents=true" in target)
        elif target.rstrip("/") == "/version":
            connection.sendall(b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (VERSION_HEAD, VERSION))
        else:
            begin(connection, CONTENT_TYPES[form, "list"])
            self._send(connection, self._page(target, form) or self._whole_list, form)

    @property
    def _whole_list(self) -> str:
        return "relist" if self._changed else "list"

    def _page(self, target: str, form: str) -> str:
        """Return the name of the requested page; empty if the whole list is the answer."""
        options = parse_qs(urlsplit(target).query)
        if "limit" not in options or options.get("resourceVersion") == ["0"] or self._changed:
            return ""
        first = options.get("continue", ["0"])[0]
        name = f"pages/{options['limit'][0]}/{first}"
        return name if (self._folder / f"{name}.{form}.http").exists() else ""

    def _watch(self, connection: socket.socket, form: str, *, initial: bool) -> None:
        """Send the events after ``/go``, and the error after ``/expire`` or ``/forget``.

        A watch that begins after the error sends the initial state, if requested, and nothing more.
        """
        begin(connection, CONTENT_TYPES[form, "watch"])
        if initial:
            self._send(connection, "reinitial" if self._changed else "initial", form)
        if self._expired.is_set():
            threading.Event().wait()
        self._go.wait()
        self._send(connection, "watch", form)
        self._expired.wait()
        connection.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(EXPIRED), EXPIRED))

    def _send(self, connection: socket.socket, name: str, form: str) -> None:
        with (self._folder / f"{name}.{form}.http").open("rb") as file:
            connection.sendfile(file)


def begin(connection: socket.socket, content_type: str) -> None:
    """Send the head of a response in chunks."""
    connection.sendall(
        f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )


def rate(server: str) -> float:
    """Return the bytes a second that a load server sends to a socket that discards the list."""
    host, _, port = server.removeprefix("http://").partition(":")
    buffer, size, end = bytearray(1024 * 1024), 0, b"0\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        start = time.perf_counter()
        connection.sendall(b"GET /api/v1/pods HTTP/1.1\r\n\r\n")
        while n := connection.recv_into(buffer):
            size += n
            if buffer.endswith(end, 0, n):
                break
        return size / (time.perf_counter() - start)


def main() -> None:
    """Serve the folder that the command line names."""
    server = LoadServer(Path(sys.argv[1]))
    print(server.port, flush=True)
    server.run()


if __name__ == "__main__":
    main()
