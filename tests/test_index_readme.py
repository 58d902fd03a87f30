"""The README as package indexes show it."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from docs.index_readme import without_relative_links

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("see [the guide](a/b.md#c), and [d](#e).", "see the guide, and d."),
        ("see [kopf](https://docs.kopf.dev/).", "see [kopf](https://docs.kopf.dev/)."),
        ("a\n\n[![two\nlines](a.gif)](b)\n\nc", "a\n\nc"),
        ("a\n\n[![p](a.svg)](https://b.example)\n\nc", "a\n\nc"),
        ("![p](https://b.example/p.svg) and ![q](q.svg)", "![p](https://b.example/p.svg) and "),
        ("[`a`](b) · [c](d)", "`a` · c"),
        ("```python\nx[0](y)\n```\n[a](b)", "```python\nx[0](y)\n```\na"),
    ],
)
def test_relative_links_and_pictures_are_left_out(source: str, shown: str) -> None:
    assert without_relative_links(source).startswith(f"{shown}\nThe guides")


def test_the_metadata_of_the_wheel_has_absolute_links_alone(tmp_path: Path) -> None:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = str(metadata.get_payload())
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)]*)\)", prose)
    assert len(targets) >= 10
    assert [each for each in targets if not each.startswith("https://")] == []
    assert text.startswith("# aioinformer\n")
    assert "pip install ." in text
    assert "src=" not in prose
    assert "<img" not in prose
