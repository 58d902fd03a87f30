"""Content negotiation: the headers ``Accept``, ``Accept-Encoding`` and ``User-Agent``.

Only JSON is written here, in the forms of ``meta.k8s.io``. Other formats that a client prefers are
skipped, and a request without any supported format is answered with 406.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding
from aioinformer.testing.wire.tables import META_API_VERSION, ObjectForm

JSON = "application/json"

PARSED_HEADERS = 256
"""Headers whose parts are remembered. A client sends the same ones with each request."""

_ACCEPTED_TYPES = (JSON, "application/*", "*/*")
_PRETTY_PRINTED_AGENTS = ("curl", "Wget", "Mozilla/5.0")
"""The beginnings of the User-Agents of "all browsers and cli http tools" (``isPrettyPrint``)."""

_PARTIAL_METADATA, _PARTIAL_METADATA_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"


def negotiate_list_form(accept: str, resource: Resource) -> ObjectForm:
    """Return the form of a list, or raise ``ServerError``, 406."""
    for kind in _requested_kinds(accept):
        if kind in ("", "Table", _PARTIAL_METADATA_LIST):
            return "table" if kind == "Table" else "metadata" if kind else "whole"
        if kind == _PARTIAL_METADATA:
            raise statuses.list_not_acceptable(_go_list_type(resource))
    raise statuses.not_acceptable(JSON)


def negotiate_object_form(accept: str) -> Literal["whole", "metadata"]:
    """Return the form of one object, or raise ``ServerError``: 406, 500 for the form of a list."""
    for kind in _requested_kinds(accept):
        if kind in ("", _PARTIAL_METADATA):
            return "metadata" if kind else "whole"
        if kind == _PARTIAL_METADATA_LIST:
            raise statuses.not_a_list()
    raise statuses.not_acceptable(JSON)


def negotiate_watch_form(accept: str) -> ObjectForm:
    """Return the form of the objects in a watch, or raise ``ServerError``, 406."""
    for kind in _requested_kinds(accept):
        if kind in ("", "Table", _PARTIAL_METADATA):
            return "table" if kind == "Table" else "metadata" if kind else "whole"
    raise statuses.not_acceptable(JSON)


def accepts_plain(accept: str) -> bool:
    """Return True if whole objects are accepted, so that a Status can be sent as one."""
    return "" in _requested_kinds(accept)


def _requested_kinds(accept: str) -> Iterator[str]:
    """Yield the accepted kinds, the preferred one first; "" stands for whole objects."""
    for media_type, parameters in _parse_accept(accept or "*/*"):
        if media_type not in _ACCEPTED_TYPES:
            continue
        wanted = {name: parameters.get(name, "") for name in ("as", "g", "v")}
        # Parameters of another group (discovery, for example) name no form, so they are skipped.
        if not any(wanted.values()):
            yield ""
        elif f"{wanted['g']}/{wanted['v']}" == META_API_VERSION:
            yield wanted["as"]


@lru_cache(maxsize=PARSED_HEADERS)
def _parse_accept(accept: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Return the media types with their parameters, by decreasing quality."""
    clauses: list[tuple[str, Mapping[str, str]]] = []
    for offer in accept.replace(" ", "").split(","):
        media_type, *pairs = offer.split(";")
        split = [pair.partition("=") for pair in pairs]
        clauses.append((media_type, {name: value for name, _, value in split}))
    return tuple(sorted(clauses, key=lambda clause: -_parse_quality(clause[1].get("q", "1"))))


def _parse_quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _go_list_type(resource: Resource) -> str:
    """Return the server's Go type of a list, which its error texts name."""
    if Encoding(resource).custom:
        return "*unstructured.UnstructuredList"
    return f"*{resource.version}.{resource.kind}List"


def wants_aggregated(accept: str) -> bool:
    """Return True if the first accepted format that is supported is aggregated discovery."""
    wanted = {"as": "APIGroupDiscoveryList", "g": "apidiscovery.k8s.io", "v": "v2"}
    for media_type, parameters in _parse_accept(accept):
        if media_type not in _ACCEPTED_TYPES:
            continue
        if wanted.items() <= parameters.items():
            return True
        if "as" not in parameters:
            return False
    return False


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Return True for ``gzip``; the server doesn't understand a quality (``gzip;q=1``)."""
    offered = headers.get("Accept-Encoding", "").split(",")
    return any(offer.strip() == "gzip" for offer in offered)


def wants_pretty(headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
    """Return True if the answer is to be indented, for a person."""
    if asked := query.get("pretty"):
        return asked in ("1", "t", "T", "TRUE", "true", "True")
    return headers.get("User-Agent", "").startswith(_PRETTY_PRINTED_AGENTS)
