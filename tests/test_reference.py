"""The build of the reference covers every module with public names, and misses none of them."""

from __future__ import annotations

from pathlib import Path

import aioinformer
from docs.__main__ import MODULES, find_missing_names

ADAPTERS = Path(aioinformer.__file__).parent / "adapters"


def test_each_adapter_is_in_the_reference() -> None:
    adapters = {each.stem for each in ADAPTERS.iterdir() if not each.stem.startswith("_")}
    assert {f"aioinformer.adapters.{adapter}" for adapter in adapters} <= set(MODULES)


def test_a_name_without_an_entry_is_reported(tmp_path: Path) -> None:
    for module in (*MODULES, "aioinformer.errors"):
        page = tmp_path / f"{module.replace('.', '/')}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text('<section id="Client"></section>')
    missing = find_missing_names(tmp_path)
    assert "aioinformer.SharedInformer" in missing
    assert "aioinformer.conditions.exists" in missing
    assert "aioinformer.Client" not in missing
