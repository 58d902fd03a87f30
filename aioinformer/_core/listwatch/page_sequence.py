"""``PageSequence``: the pages of one list, which must come to an end.

A faulty server or proxy can offer a new continue token with every page for ever. The number of
pages is therefore limited, by what the server itself announces as the number of remaining items and
by a fixed number. A list that exceeds a limit fails with a ``ProtocolError``.
"""

from __future__ import annotations

from aioinformer._core.quantities import quantity
from aioinformer.errors import ProtocolError

MAX_PAGES = 10_000
"""Pages of one list: five million objects, in pages of 500. etcd doesn't hold as many."""
MAX_EMPTY_PAGES = 10
"""Pages in a row without an object, but with a token. kube-apiserver sends none: it fills a page
even if a selector matches few objects."""
TOLERANCE = 2
"""The factor by which a list may exceed the number of objects that its first page announced, which
is an estimate according to the documentation of ``remainingItemCount``."""
TOLERATED_ITEMS = 1000
"""Objects by which any list may exceed that number."""


class PageSequence:
    def __init__(self) -> None:
        self.pages = 0
        self.items = 0
        self._announced: int | None = None
        self._empty_pages = 0
        self._tokens = set[int]()
        """Hashes of the tokens: an equal hash of two of 10,000 tokens is as good as impossible."""

    def add(self, items: int, remaining: int | None, continue_token: str) -> None:
        """Record a page that was read to its end; the last one is always accepted.

        Raises:
            ProtocolError: the server offers a further page, and the list exceeds a limit.
        """
        self.pages += 1
        self.items += items
        if self.pages == 1 and remaining is not None:
            self._announced = items + max(remaining, 0)
        self._empty_pages = 0 if items else self._empty_pages + 1
        if continue_token and (fault := self._find_fault(hash(continue_token))):
            read = f"after {quantity(self.pages, 'page')} with {quantity(self.items, 'object')}"
            raise ProtocolError(
                f"the list does not end: {read} the server offers another page, although {fault}",
                phase="list",
            )
        self._tokens.add(hash(continue_token))

    def _find_fault(self, token: int) -> str:
        if token in self._tokens:
            return "its token was that of an earlier page"
        if self._empty_pages >= MAX_EMPTY_PAGES:
            return f"the last {self._empty_pages} pages were empty"
        announced = self._announced
        if announced is not None and self.items > TOLERANCE * announced + TOLERATED_ITEMS:
            return f"its first page announced {quantity(announced, 'object')}"
        if self.pages >= MAX_PAGES:
            return f"a list may have {MAX_PAGES} pages; a larger page_size makes fewer of them"
        return ""

    def __repr__(self) -> str:
        return f"<PageSequence pages={self.pages} items={self.items}>"
