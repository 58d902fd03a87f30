"""The options of a reflector, gathered in one frozen value.

``Reflector`` builds the value once from its keywords; an informer passes the value itself. Every
option is documented here, on its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypedDict

from aioinformer._core.arguments import check_names
from aioinformer._core.codec.watch_decoder import LINE_CAP
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.polling import POLL_INTERVAL

__all__ = ["ReflectorKeywords", "ReflectorOptions"]

MIN_POLL_INTERVAL = 5.0
"""The least ``poll_interval`` in seconds. Each poll is a list of the whole state."""


class ReflectorKeywords(TypedDict, total=False):
    """The options as keywords; ``None`` and a missing keyword both mean the default."""

    backoff: BackoffPolicy | None
    liveness: LivenessPolicy | None
    watch_list: bool
    page_size: int
    line_cap: int
    poll_interval: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """The options of one reflector."""

    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)
    """The waits after failed requests."""
    liveness: LivenessPolicy = field(default_factory=LivenessPolicy)
    """The idle timeout of a watch, and the time limits of an initial list."""
    watch_list: bool = True
    """True if the state is read by a WatchList where the source and the server support it. False
    reads the state by lists only."""
    page_size: int = 0
    """Items per page of a list. 0 means client-go's rule: 500, and no limit for a list at a known
    resourceVersion, because a limit would bypass the server's watch cache."""
    line_cap: int = LINE_CAP
    """The longest watch event, in bytes, that the reflector accepts."""
    poll_interval: float = POLL_INTERVAL
    """Seconds, five at least, between two lists that refresh the cache where the server serves
    lists and refuses watches (403, 404 or 405). Each interval is up to a tenth shorter or longer.
    The watch is tried again now and then."""

    def __post_init__(self) -> None:
        """Reject numbers that no server accepts.

        Raises:
            TypeError: ``page_size`` or ``line_cap`` is no int.
            ValueError: ``page_size`` is negative, ``line_cap`` is less than 1, or
                ``poll_interval`` less than 5.
        """
        _check_number("page_size", self.page_size, 0)
        _check_number("line_cap", self.line_cap, 1)
        if not MIN_POLL_INTERVAL <= self.poll_interval < float("inf"):  # so that a NaN fails, too
            raise ValueError(
                f"poll_interval must be at least {MIN_POLL_INTERVAL:g} seconds, "
                f"not {self.poll_interval:g}"
            )

    def merge(self, keywords: Mapping[str, Any]) -> Self:
        """Return a copy in which ``keywords`` replace the fields of the same names.

        A keyword that is ``None`` keeps the field.

        Raises:
            TypeError: a keyword isn't the name of a field.
        """
        check_names(keywords, [each.name for each in fields(self)])
        given = {name: value for name, value in keywords.items() if value is not None}
        return replace(self, **given) if given else self


def _check_number(name: str, number: object, least: int) -> None:
    # ``object``, because a program without a type checker may pass a text from its configuration.
    if not isinstance(number, int):
        raise TypeError(f"{name} must be a whole number, not {number!r}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
