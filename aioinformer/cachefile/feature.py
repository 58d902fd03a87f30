"""The cache file as a feature of an informer: ``cache=CacheFile("pods.db")``."""

from __future__ import annotations

from typing import cast

from aioinformer.cachefile.cache_file import CacheFile
from aioinformer.cachefile.checkpointer import Checkpointer


def make_feature(file: CacheFile) -> Checkpointer:
    """Return the feature of a new informer."""
    # A program without a type checker may pass anything.
    if not isinstance(cast("object", file), CacheFile):
        raise TypeError(f"cache is a CacheFile: write cache=CacheFile({file!r})")
    return Checkpointer(file)
