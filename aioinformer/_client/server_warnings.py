"""``Warning`` headers: what a server says beside an answer that it gives.

An API that will go, a field that it doesn't know and has dropped: the one place where a program's
typo shows that is no error. client-go logs each of them; here each is logged once a client, since
a controller writes the same object over and over.
"""

from __future__ import annotations

import logging
import re

from multidict import CIMultiDictProxy

from aioinformer._client.masking import Mask
from aioinformer._core.statuses import one_line

__all__ = ["Cautions"]

log = logging.getLogger("aioinformer.client")

SENT = re.compile(r'299 (?:\S+) "((?:[^"\\]|\\.)*)"')
"""``299 - "text"``, as API servers write it: RFC 7234's warn-code for anything else, an agent, and
a quoted string. A header may have several, after commas."""

REMEMBERED = 500
"""Texts that are known to have been logged. Some name the object, and a server has many."""


class Cautions:
    """The warnings of one server."""

    def __init__(self) -> None:
        """None came yet."""
        self._told: dict[str, None] = {}

    def heed(self, headers: CIMultiDictProxy[str], mask: Mask) -> None:
        """Log what an answer's headers warn of, unless that was done.

        Args:
            headers: of the answer.
            mask: hides what was sent.
        """
        for header in headers.getall("Warning", ()):
            for found in SENT.finditer(header):
                text = one_line(mask.text(re.sub(r"\\(.)", r"\1", found[1])))
                if text not in self._told:
                    self._remember(text)
                    log.warning("the server warns: %s", text)

    def _remember(self, text: str) -> None:
        if len(self._told) >= REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[text] = None

    def __repr__(self) -> str:
        return f"<Cautions, {len(self._told)} told>"
