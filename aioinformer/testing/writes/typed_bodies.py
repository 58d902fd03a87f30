"""The decoding of a body's known fields with their types, as Go decodes them into a struct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from aioinformer.testing.wire import statuses

T = TypeVar("T", bound=msgspec.Struct)


def convert_body(body: Mapping[str, Any], wanted: type[T]) -> T:
    """Return the fields that a struct has; raise ``BadRequest`` if one has the wrong type."""
    try:
        return msgspec.convert(body, wanted)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(str(error)) from error
