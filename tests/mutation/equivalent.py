"""The list of changes that no test can notice, as ``equivalent.toml`` states them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

__all__ = ["EQUIVALENT", "Equivalence", "find_outdated", "find_reason"]

CAST = re.compile(r'cast\((?:None|"[^"]*"), ')
"""The type of a ``cast``, which nothing reads at run time: changes of it are equivalent."""

NONE_FOR_FALSE = re.compile(
    r'- (?P<target>[^=]+ = )(?:False|b?""|0|0\.0) \+ (?P=target)None'
    r"|- (?P<head>.*=)False(?P<tail>[,)].*) \+ (?P=head)None(?P=tail)"
)
"""``None`` in the place of ``False``, 0 or an empty text: all of them are false, and the strict
type check rejects the change. (Tests notice it if a sum contains the number.)"""


class Equivalence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of one module that alter nothing that a caller can see, for one reason."""

    reason: str
    changes: list[str]
    """The removed and the added lines of each change, as the command prints them."""


def _read() -> Mapping[str, list[Equivalence]]:
    text = Path(__file__).with_name("equivalent.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, list[Equivalence]])


EQUIVALENT = _read()
"""The equivalent changes by module, as ``package.module``."""


def find_reason(module: str, change: str) -> str | None:
    """Return the reason for which a change alters nothing; ``None`` if it is no known one."""
    removed, _, added = CAST.sub("cast(", change).removeprefix("- ").partition(" + ")
    if removed == added:
        return "nothing reads the type of a cast at run time"
    if NONE_FOR_FALSE.fullmatch(change):
        return "both values are false, and the type check rejects ``None``"
    for each in EQUIVALENT.get(module, []):
        if change in each.changes:
            return each.reason
    return None


def find_outdated(module: str, source: str) -> list[str]:
    """Return the listed changes of a module whose removed line ``source`` no longer has."""
    starts = tuple(f"- {line.strip()} " for line in source.splitlines() if line.strip())
    changes = [change for each in EQUIVALENT.get(module, []) for change in each.changes]
    return [change for change in changes if not change.startswith(starts)]
