"""The confirmation of a restored state, which may be older than the server's.

The state machine asks the server for its version, and then
watches from the version of the state. The state is confirmed when the watch has reached the
server's version: the cache is as new as after a list. A server that sends neither a change nor a
bookmark confirms the state by ending the first, short watch as usual.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.objects.object_key import is_numeric, is_older

CONFIRMING_WATCH_SECONDS = 4
"""Seconds of the watches before the confirmation. A server sends a bookmark, which confirms the
state, two seconds before the end of a watch. An ordinary watch has its first one after a minute."""


class Confirmation:
    def __init__(self) -> None:
        self.pending = False
        """True while the server has not confirmed a restored state."""
        self.server_version = ""
        """The version that the server had when the state was restored; empty if unknown."""

    def reach(self, version: str) -> bool:
        """Return True, once, if everything up to ``version`` confirms the state.

        Versions that are no numbers confirm the state only if they are equal.
        """
        server = self.server_version
        if not self.pending or not server:
            return False
        if version != server and (
            is_older(version, server) or not (is_numeric(version) and is_numeric(server))
        ):
            return False
        self.pending = False
        return True

    def end_watch(self, end: RequestEnd) -> bool:
        """Return True, once, if ``end`` is the usual end of a watch, and so confirms the state."""
        if not self.pending or end.outcome is not Outcome.ENDED:
            return False
        self.pending = False
        return True

    def __repr__(self) -> str:
        return f"<Confirmation pending={self.pending} server={self.server_version or 'unknown'}>"
