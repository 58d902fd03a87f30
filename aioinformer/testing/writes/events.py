"""The two forms of an Event: core/v1 and events.k8s.io/v1, which are one store in a server.

Source: the conversions of kubernetes (``pkg/apis/events/v1/conversion.go``), which rename fields.
"""

from __future__ import annotations

from collections.abc import Mapping

from aioinformer.testing.wire.encoding import JsonObject

_NAMES: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""The fields of core/v1 with another name in events.k8s.io/v1. All other fields have one name."""
_CORE_NAMES = {new: old for old, new in _NAMES.items()}


def from_core(body: JsonObject) -> JsonObject:
    renamed = {_NAMES.get(name, name): value for name, value in body.items()}
    return renamed | {"apiVersion": "events.k8s.io/v1"}


def to_core(body: JsonObject) -> JsonObject:
    renamed = {_CORE_NAMES.get(name, name): value for name, value in body.items()}
    return renamed | {"apiVersion": "v1"}
