"""The time of each regular expression of the package, for inputs that make a bad one slow."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, cast

import aioinformer

LENGTH = 1_000
"""Characters of a hostile text. A search that takes exponential time never ends for it, and one
that takes cubic time takes minutes."""
MAX_SECONDS = 0.1
"""CPU time of one search, which takes 30 ms at most."""

PIECES = (
    *"a A0.-_/:,;=\"'`\\\n\t()[]{}<>%!\u00e4",
    *("aa.", "a=", "a ", '"a",', "\\\\", '\\"', "a/", "0a", "'a'", "[0]", ".a"),
)
"""What a hostile text repeats."""

Expression = re.Pattern[str] | re.Pattern[bytes]


@cache
def expressions() -> dict[str, Expression]:
    """Return the compiled expressions of all modules by their text."""
    found: dict[str, Expression] = {}
    for info in pkgutil.walk_packages(aioinformer.__path__, "aioinformer."):
        if info.name.endswith("__main__"):
            continue
        values: list[object] = [*vars(importlib.import_module(info.name)).values()]
        for value in values:
            parts = cast("Iterable[object]", value) if isinstance(value, tuple | list) else (value,)
            for each in parts:
                if isinstance(each, re.Pattern):
                    expression = cast("Expression", each)
                    found[str(expression.pattern)] = expression
    return found


def hostile_texts(pattern: str) -> Iterator[str]:
    """Yield long texts that nearly match: a word of the pattern, then a piece that repeats, and an
    end that can't match.
    """
    words = re.findall(r"[A-Za-z]{2,}[A-Za-z .:=/-]*", pattern)
    for word in ("", *words[:3]):
        for piece in PIECES:
            yield word + (piece * LENGTH)[:LENGTH] + "\0"


def search_seconds(expression: Expression, text: str) -> float:
    search: Any = expression.search
    began = time.thread_time()
    search(text if isinstance(expression.pattern, str) else text.encode())
    return time.thread_time() - began


def test_no_regular_expression_takes_long_for_a_text_that_nearly_matches() -> None:
    slow = [
        (pattern, text[:40])
        for pattern, expression in expressions().items()
        for text in hostile_texts(pattern)
        if all(search_seconds(expression, text) > MAX_SECONDS for _ in range(3))
    ]
    assert not slow
    assert len(expressions()) > 50


def test_an_expression_that_backtracks_is_found() -> None:
    bad = re.compile(r"(a|a)*b")
    assert search_seconds(bad, "a" * 18) > 10 * search_seconds(bad, "a" * 12)
