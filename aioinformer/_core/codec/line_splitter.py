r"""The splitter of a watch, a stream of JSON objects, into lines.

Lines end at ``\n`` and nowhere else: U+0085 and its kin are legal inside a JSON string, and a
splitter that follows Unicode would cut there. A line may be long (Go escapes ``<``, ``>`` and ``&``
to six bytes, so that an object of 1.5 MiB can take 9), so the only limit is a cap against nonsense.
"""

from __future__ import annotations

from typing import TypeAlias

from aioinformer.errors import LineTooLong

Line: TypeAlias = tuple[bytes, int, int]
"""The bytes that contain the line, and the offsets of its first byte and after its end."""


LINE_CAP = 64 * 1024 * 1024
"""The longest line in bytes. The largest event of a server with default limits has 9 MiB.

The decoding of a line is one step, which holds the event loop for about 1.4 ms a megabyte: 10 ms at
7 MB, 90 ms at this cap. msgspec decodes whole values only, and a thread would not help, since
msgspec holds the interpreter's lock meanwhile."""


_EMPTY_LINES = b"\n", b"\r\n"
"""Lines without content. Some proxies send such lines to keep a connection alive."""


class LineSplitter:
    def __init__(self, *, cap: int = LINE_CAP) -> None:
        self._cap = cap
        self._tail: list[bytes] = []
        self._tail_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return copies of the lines that ``chunk`` completes; see ``find_lines``."""
        return [source[start:end] for source, start, end in self.find_lines(chunk)]

    def find_lines(self, chunk: bytes) -> list[Line]:
        """Return the lines that ``chunk`` completes, with their ends, without empty lines.

        Only a line that came in several chunks is copied.

        Raises:
            LineTooLong: the line under way is longer than the cap.
        """
        lines: list[Line] = []
        find, start = chunk.find, 0
        end = find(b"\n") + 1  # not ``bytes.split``, which looks at one byte after the other
        if end and self._tail:
            line = self.take_rest(chunk[:end])
            if line not in _EMPTY_LINES:
                lines.append((line, 0, len(line)))
            start, end = end, find(b"\n", end) + 1
        while end:
            if end - start > 2 or chunk[start:end] not in _EMPTY_LINES:
                lines.append((chunk, start, end))
            start, end = end, find(b"\n", end) + 1
        if start < len(chunk):
            self._buffer_tail(chunk[start:])
        return lines

    def _buffer_tail(self, part: bytes) -> None:
        self._tail.append(part)
        self._tail_size += len(part)
        if self._tail_size > self._cap:
            raise LineTooLong(
                f"a watch event is longer than {self._cap} bytes; if the cluster has objects of "
                "this size, raise line_cap",
                phase="watch",
            )

    def take_rest(self, end: bytes = b"") -> bytes:
        """Return the line under way with its end."""
        rest = b"".join((*self._tail, end))
        self._tail.clear()
        self._tail_size = 0
        return rest

    @property
    def buffered(self) -> int:
        """Bytes of the line under way, which the next watch sends again if the stream ends now."""
        return self._tail_size

    def __repr__(self) -> str:
        return f"<LineSplitter pending={self._tail_size} B>"
