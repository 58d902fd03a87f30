"""Tests of content negotiation."""

from __future__ import annotations

import pytest

from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ServerError
from aioinformer.testing.wire.negotiation import (
    accepts_gzip,
    accepts_plain,
    negotiate_list_form,
    negotiate_object_form,
    negotiate_watch_form,
    wants_aggregated,
    wants_pretty,
)

PODS = find_built_in("pods")
META = "application/json;as={};g=meta.k8s.io;v=v1"
TABLE = META.format("Table")
PARTIAL, PARTIALS = META.format("PartialObjectMetadata"), META.format("PartialObjectMetadataList")
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "whole"),
        ("*/*", "whole"),
        ("application/*", "whole"),
        (f"{PROTOBUF}, application/json", "whole"),
        (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1, {TABLE}, application/json", "table"),
        (f"application/json;q=0.5, {PARTIALS}", "metadata"),
        ("application/json;q=x", "whole"),
        ("application/json;as=Table;g=meta.k8s.io;v=v2, application/json", "whole"),
    ],
)
def test_a_list_has_the_first_supported_form(accept: str, form: str) -> None:
    assert negotiate_list_form(accept, PODS) == form


@pytest.mark.parametrize(
    ("accept", "form"),
    [("application/json", "whole"), (f"{TABLE}, {PARTIAL}", "metadata"), ("*/*", "whole")],
)
def test_an_object_has_the_first_supported_form(accept: str, form: str) -> None:
    assert negotiate_object_form(accept) == form


@pytest.mark.parametrize(
    ("accept", "code", "message"),
    [
        (PROTOBUF, 406, "only the following media types"),
        (PARTIAL, 406, r"the requested object is a list \(\*v1.PodList\)"),
    ],
)
def test_a_list_without_a_supported_form_is_an_error(accept: str, code: int, message: str) -> None:
    with pytest.raises(ServerError, match=message) as caught:
        negotiate_list_form(accept, PODS)
    assert caught.value.status.code == code


def test_the_list_form_for_a_single_object_is_an_error() -> None:
    with pytest.raises(ServerError, match="not a list"):
        negotiate_object_form(PARTIALS)
    assert negotiate_watch_form(f"{PARTIALS},application/json") == "whole"


@pytest.mark.parametrize(
    ("accept", "form"),
    [("", "whole"), (PARTIAL, "metadata"), (f"{TABLE},application/json", "table")],
)
def test_a_watch_has_the_first_supported_form(accept: str, form: str) -> None:
    assert negotiate_watch_form(accept) == form


def test_a_watch_without_a_supported_form_is_an_error() -> None:
    with pytest.raises(ServerError, match="only the following media types"):
        negotiate_watch_form("text/html")


def test_a_status_is_sent_unchanged_if_plain_json_is_accepted() -> None:
    assert accepts_plain(f"{TABLE},application/json")
    assert not accepts_plain(TABLE)


def test_the_aggregated_form_of_discovery_has_to_come_before_the_plain_one() -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert wants_aggregated(f"{aggregated},application/json")
    assert not wants_aggregated(f"application/json,{aggregated}")
    assert not wants_aggregated(aggregated.replace("v=v2", "v=v2beta1"))
    assert not wants_aggregated("")


def test_gzip_is_accepted_without_a_quality_only() -> None:
    assert accepts_gzip({"Accept-Encoding": "deflate, gzip"})
    assert not accepts_gzip({"Accept-Encoding": "gzip;q=1.0"})
    assert not accepts_gzip({})


def test_browsers_receive_indented_json_unless_the_query_disables_it() -> None:
    for agent in ("curl/8", "Wget/1", "Mozilla/5.0 (X11)"):
        assert wants_pretty({"User-Agent": agent}, {})
        assert not wants_pretty({"User-Agent": agent}, {"pretty": "false"})
    assert wants_pretty({}, {"pretty": "true"})
    assert not wants_pretty({"User-Agent": "aioinformer/1"}, {})
