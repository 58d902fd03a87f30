"""The keywords of the reads of ``ResourceApi``, documented once."""

from __future__ import annotations

from typing import TypedDict

from aioinformer._core.cache.query import FieldChoice, LabelChoice


class WatchKeywords(TypedDict, total=False):
    """The keywords of a watch and of a list."""

    labels: LabelChoice
    """A label selector, such as ``app=shop,tier!=cache``."""
    fields: FieldChoice
    """A field selector. The server supports few fields, such as ``spec.nodeName`` of pods."""
    metadata_only: bool
    """True to read ``PartialObjectMetadata``: objects that have metadata and nothing else."""
    managed_fields: bool
    """True to keep ``metadata.managedFields`` in the objects."""


class ListKeywords(WatchKeywords, total=False):
    resource_version: str
    """``""``: the newest state, by a consistent read (default). ``"0"``: any state, from the
    server's cache: cheap, and perhaps some seconds old. Another version: a state that is not older.
    """
    page_size: int
    """Objects per page; 500 by default, 0 for one page with all of them."""


class LogKeywords(TypedDict, total=False):
    """The keywords of a log: the API's query parameters in Python's spelling."""

    container: str
    """The container; needed if the pod has several."""
    follow: bool
    """True to wait for further lines."""
    previous: bool
    """True for the log of the container's previous, terminated instance."""
    since_seconds: int
    """Only lines of the last so many seconds."""
    tail_lines: int
    """Only so many lines from the end."""
    timestamps: bool
    """True to begin each line with its time."""
