"""``Timeouts``: how long a client waits for what.

Numbers only, each with its reason; ``transport``, ``sessions`` and ``access`` keep to them. None
is endless: a wait that nothing ends is an informer that stands still and doesn't say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import cast

__all__ = ["Timeouts"]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what, in seconds.

    Raises:
        ValueError: one is no number, not above 0, or endless.
    """

    connect: float = 10.0
    """For a connection: name, TCP, proxy and TLS together. And, before that, for a token to be
    renewed, or a kubeconfig to be read: a file system that hangs must not leave an informer
    waiting for ever."""
    silence: float = 75.0
    """Without a byte of a list or single request, the first one included. kube-apiserver gives
    such requests 60 s (``--request-timeout``); its own answer shall come first."""
    watch_start: float = 90.0
    """For the head of a watch. A server sends it at once (recording 37), but some proxies hold
    it back until the first byte of the body. On a quiet resource that is a bookmark, one a
    minute: so a minute, and half of one for lateness."""
    grace: float = 30.0
    """What a watch may last beyond the time that the server was asked to end it after."""
    whole: float = 120.0
    """For all of a single request, such as a discovery document, however steadily it drips. Lists
    and watches, which are read as they arrive, have other ends."""

    def __post_init__(self) -> None:
        for each in fields(self):
            seconds: object = getattr(self, each.name)
            number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not (number and 0 < cast("float", seconds) < math.inf):
                raise ValueError(f"{each.name} is a number of seconds above 0, not {seconds!r}")
