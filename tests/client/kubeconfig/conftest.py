"""A folder that may not be entered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def forbidden(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that this user, also if it is root, may not enter."""
    folder = tmp_path / "forbidden"
    folder.mkdir()
    folder.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    yield folder
    if is_root:
        os.seteuid(0)
    folder.chmod(0o700)
