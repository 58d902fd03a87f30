"""The README as package indexes show it: every link is absolute.

hatchling calls the hook when it builds a wheel or a source distribution. On the page of an index, a
relative link leads nowhere, and the project has no public address yet that would make it absolute.
So the text of such a link stays without the link, pictures are left out, and a last sentence says
where the files are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["ReadmeHook", "without_relative_links"]

RELATIVE = r"\((?!https?://)[^)\s]*\)"
"""The target of a link to a file or a heading."""

PICTURE = re.compile(rf"\[!\[[^\]]*\]{RELATIVE}\]\([^)\s]*\)\n*|!\[[^\]]*\]{RELATIVE}\n*")
"""A picture of a file, with the link around it if there is one."""

LINK = re.compile(rf"\[([^\]]+)\]{RELATIVE}")

CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
"""A block of code, which has no links."""

FILES = """
The guides, examples and results that this page names are in the source distribution.
"""


def without_relative_links(text: str) -> str:
    """Return a Markdown page without its pictures and links of files and headings."""
    parts = CODE.split(text)
    parts[::2] = [LINK.sub(r"\1", PICTURE.sub("", part)) for part in parts[::2]]
    return "".join(parts) + FILES


class ReadmeHook(MetadataHookInterface):
    """Set the ``readme`` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata of the project."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_relative_links(text),
        }
