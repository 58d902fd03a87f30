"""The README as package indexes show it."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent


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
