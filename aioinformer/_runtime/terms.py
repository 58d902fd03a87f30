"""How a handler is to be called: what ``add_handler`` was asked for, checked.

Who calls it that way is ``calling``; how much may be pending is the mailbox's.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Terms", "check_whole"]


def check_whole(name: str, value: object) -> None:
    """Raise TypeError unless the argument of this name is an integer."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")


class Terms(Struct, frozen=True):
    """How a handler is to be called. ``add_handler`` explains each."""

    concurrency: int = 1
    timeout: float | None = None
    run_in_thread: bool = False
    drain: bool = False
    fail_fast: bool = False

    def __post_init__(self) -> None:
        check_whole("concurrency", self.concurrency)
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be seconds, or None for no limit, not {self.timeout:g}")
