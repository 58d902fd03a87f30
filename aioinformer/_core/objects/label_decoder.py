"""The decoder of labels alone, since selectors and label indexes read them of many objects."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from aioinformer._core.objects.json_depth import upper_levels


class _LabelsMetadata(Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labels(Struct, gc=False):
    metadata: _LabelsMetadata


_decode = msgspec.json.Decoder(_Labels).decode


def decode_labels(raw: bytes) -> dict[str, str]:
    """Return ``metadata.labels`` of the object ``raw``; empty if there are none.

    Raises:
        msgspec.DecodeError: the labels can't be read, or the object is no JSON.
    """
    try:
        found = _decode(raw)
    except RecursionError:
        found = _decode(upper_levels(raw))
    return found.metadata.labels or {}
