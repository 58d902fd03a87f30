"""The code in pages of Markdown, to be run as a reader would."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["MarkdownPage"]


class MarkdownPage:
    """A page, or several that are read as one, and the blocks of code in it."""

    def __init__(self, *paths: Path) -> None:
        self.text = "\n".join(path.read_text() for path in paths)

    def block(self, containing: str, *, language: str = "python") -> str:
        """The block with this text in it."""
        (found,) = [each for each in find_blocks(self.text, language) if containing in each]
        return found

    def block_under(self, heading: str, *, language: str = "python") -> str:
        """The block under this heading."""
        (found,) = find_blocks(self.section(heading), language)
        return found

    def section(self, heading: str) -> str:
        """What is under this heading, up to the next one."""
        parts = re.split(r"^##+ (.*)\n", self.text, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]

    def write_script(self, heading: str, folder: Path) -> Path:
        """The program under this heading, in a file of its own."""
        script = folder / f"{heading.lower().replace(' ', '_')}.py"
        script.write_text(self.block_under(heading))
        return script


def find_blocks(text: str, language: str) -> list[str]:
    """All blocks of a language."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return found
