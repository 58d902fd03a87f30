"""Options of one listener, checked where the program gives them.

``SharedInformer.add_handler`` and ``events`` build these from their keyword arguments, which their
documentation explains. Everything below takes the one object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aioinformer._core.arguments import check_int, check_seconds
from aioinformer._core.delivery.mailbox import LIMIT
from aioinformer._core.delivery.overflow import Overflow, OverflowName

if TYPE_CHECKING:  # for listeners with a filter or a position
    from aioinformer._core.selectors.event_filter import Filter
    from aioinformer._runtime.delivery.listener import ListenerPosition


class ListenerOptions(Struct, frozen=True, kw_only=True):
    """Options of a handler or a stream: the events that it receives, and how many may wait."""

    limit: int = LIMIT
    overflow: Overflow | OverflowName = Overflow.COALESCE
    resync: float | None = None
    filter: Filter[Any] | None = None
    position: ListenerPosition | None = None

    def __post_init__(self) -> None:
        check_int("limit", self.limit)
        if self.resync is not None:
            check_seconds("resync", self.resync, zero="never")


class HandlerOptions(ListenerOptions, frozen=True, kw_only=True):
    """Options of a handler: in addition, how it is called."""

    name: str | None = None
    concurrency: int = 1
    timeout: float | None = None
    run_in_thread: bool = False
    drain: bool = False
    fail_fast: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("concurrency", self.concurrency)
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.position is not None:
            self.position.check_concurrency(self.concurrency)
        if self.timeout is not None:
            check_seconds("timeout", self.timeout)
