"""A temporary folder for datasets, in memory where the system has such a file system."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["scratch"]


@contextmanager
def scratch() -> Generator[Path]:
    """Create a temporary folder for datasets, in memory if the system has such a file system."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder with a random name is made in it
    with tempfile.TemporaryDirectory(
        prefix="aioinformer-", dir=memory if memory.is_dir() else None
    ) as name:
        yield Path(name)
