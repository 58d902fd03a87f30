"""The code blocks of Markdown pages, to run them like a reader."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["MarkdownPage", "find_blocks"]


class MarkdownPage:
    """One page, or several that are read as one, with its code blocks."""

    def __init__(self, *paths: Path) -> None:
        self.text = "\n".join(path.read_text() for path in paths)

    def block(self, containing: str, *, language: str = "python") -> str:
        """Return the block that contains a text."""
        (found,) = [each for each in find_blocks(self.text, language) if containing in each]
        return found

    def block_under(self, heading: str, *, language: str = "python") -> str:
        """Return the block under a heading."""
        (found,) = find_blocks(self.section(heading), language)
        return found

    def section(self, heading: str) -> str:
        """Return the text between a heading and the next one."""
        parts = re.split(r"^##+ (.*)\n", self.text, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]

    def write_script(self, heading: str, folder: Path) -> Path:
        """Write the program under a heading to a file."""
        script = folder / f"{heading.lower().replace(' ', '_')}.py"
        script.write_text(self.block_under(heading))
        return script


def find_blocks(text: str, language: str) -> list[str]:
    """Return all blocks of a language."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return found
