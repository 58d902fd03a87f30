"""What a client wants to be answered with: the ``Accept``, ``Accept-Encoding`` and ``User-Agent``
of a request, read as the API server reads them.

JSON is all that is written here, in the forms of ``meta.k8s.io``: what else a client would rather
have is passed over, and refused if nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding
from aioinformer.testing.wire.tables import META_API_VERSION, ObjectForm

__all__ = [
    "JSON",
    "accepts_gzip",
    "accepts_plain",
    "negotiate_list_form",
    "negotiate_object_form",
    "negotiate_watch_form",
    "wants_aggregated",
    "wants_pretty",
]

JSON = "application/json"

_ACCEPTED_TYPES = (JSON, "application/*", "*/*")
_PRETTY_PRINTED_AGENTS = ("curl", "Wget", "Mozilla/5.0")
"""What the User-Agents of "all browsers and cli http tools" begin with (``isPrettyPrint``)."""

_PARTIAL_METADATA, _PARTIAL_METADATA_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"


def negotiate_list_form(accept: str, resource: Resource) -> ObjectForm:
    """The form of a list.

    Raises:
        ServerError: 406.
    """
    for kind in _requested_kinds(accept):
        if kind in ("", "Table", _PARTIAL_METADATA_LIST):
            return "table" if kind == "Table" else "metadata" if kind else "whole"
        if kind == _PARTIAL_METADATA:
            raise statuses.list_not_acceptable(_go_list_type(resource))
    raise statuses.not_acceptable(JSON)


def negotiate_object_form(accept: str) -> Literal["whole", "metadata"]:
    """The form of one object.

    Raises:
        ServerError: 406, or 500 for the form of a list.
    """
    for kind in _requested_kinds(accept):
        if kind in ("", _PARTIAL_METADATA):
            return "metadata" if kind else "whole"
        if kind == _PARTIAL_METADATA_LIST:
            raise statuses.not_a_list()
    raise statuses.not_acceptable(JSON)


def negotiate_watch_form(accept: str) -> ObjectForm:
    """The form of the objects in a watch.

    Raises:
        ServerError: 406.
    """
    for kind in _requested_kinds(accept):
        if kind in ("", "Table", _PARTIAL_METADATA):
            return "table" if kind == "Table" else "metadata" if kind else "whole"
    raise statuses.not_acceptable(JSON)


def accepts_plain(accept: str) -> bool:
    """Whether objects as they are will do, so that a Status can be sent as one."""
    return "" in _requested_kinds(accept)


def _requested_kinds(accept: str) -> Iterator[str]:
    """The kinds that are asked for, best first; "" for objects as they are."""
    for clause in _parse_accept(accept or "*/*"):
        kind, parameters = clause
        if kind not in _ACCEPTED_TYPES:
            continue
        wanted = {name: parameters.get(name, "") for name in ("as", "g", "v")}
        if not any(wanted.values()):
            yield ""
        elif f"{wanted['g']}/{wanted['v']}" == META_API_VERSION:
            yield wanted["as"]


def _parse_accept(accept: str) -> list[tuple[str, Mapping[str, str]]]:
    clauses: list[tuple[str, Mapping[str, str]]] = []
    for offer in accept.replace(" ", "").split(","):
        kind, *pairs = offer.split(";")
        split = [pair.partition("=") for pair in pairs]
        clauses.append((kind, {name: value for name, _, value in split}))
    return sorted(clauses, key=lambda clause: -_parse_quality(clause[1].get("q", "1")))


def _parse_quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _go_list_type(resource: Resource) -> str:
    """What the server calls a list of it, which shows in its refusals."""
    if Encoding(resource).custom:
        return "*unstructured.UnstructuredList"
    return f"*{resource.version}.{resource.kind}List"


def wants_aggregated(accept: str) -> bool:
    """Whether the first format asked for that exists here is that of aggregated discovery."""
    wanted = {"as": "APIGroupDiscoveryList", "g": "apidiscovery.k8s.io", "v": "v2"}
    for kind, parameters in _parse_accept(accept):
        if kind not in _ACCEPTED_TYPES:
            continue
        if wanted.items() <= parameters.items():
            return True
        if "as" not in parameters:
            return False
    return False


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Whether the answer may be compressed. A quality (``gzip;q=1``) isn't understood."""
    offered = headers.get("Accept-Encoding", "").split(",")
    return any(offer.strip() == "gzip" for offer in offered)


def wants_pretty(headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
    """Whether the answer is for eyes: it is indented then (recording 44)."""
    if asked := query.get("pretty"):
        return asked in ("1", "t", "T", "TRUE", "true", "True")
    return headers.get("User-Agent", "").startswith(_PRETTY_PRINTED_AGENTS)
