"""Query parameters of list and watch requests, read as the options of a cluster.

The HTTP server and the list-watcher without sockets share this module. Unknown parameters are
ignored, as a real server ignores them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast, get_args

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.pages import ListQuery
from aioinformer.testing.cluster.watch_start import WatchQuery
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.selection import SelectorQuery
from aioinformer.testing.wire.tables import Include, ObjectForm


def is_watch(query: Mapping[str, str]) -> bool:
    return bool(_bool_param(query, "watch"))


def is_watch_list(query: Mapping[str, str]) -> bool:
    """Return True if a watch starts with all objects and marks their end (KEP-3157)."""
    return bool(_bool_param(query, "sendInitialEvents")) and bool(
        _bool_param(query, "allowWatchBookmarks")
    )


def selected_name(query: Mapping[str, str]) -> str:
    """Return the name that a field selector requires; empty if it requires none."""
    for term in query.get("fieldSelector", "").split(","):
        field, equals, name = term.partition("=")
        if equals and field.strip() == "metadata.name":
            return name.lstrip("=").strip()
    return ""


def required_version(query: Mapping[str, str]) -> int:
    """Return the resourceVersion that a server waits for before it answers; 0 for none.

    Watches other than WatchLists start at once, and send nothing until then.
    """
    text = query.get("resourceVersion", "")
    if not re.fullmatch("[0-9]{1,20}", text) or query.get("continue"):
        return 0
    if is_watch(query) and query.get("sendInitialEvents") != "true":
        return 0
    return int(text)


def list_page(
    cluster: Cluster,
    resource: Resource,
    namespace: str | None,
    query: Mapping[str, str],
    *,
    form: ObjectForm = "whole",
) -> bytes:
    """Return the body that answers a list request. The errors are those of ``Cluster.list``."""
    with statuses.error_phase("list"):
        options = list_query(namespace, query, form=form)
    return cluster.list_page(resource, options)


def list_query(
    namespace: str | None, query: Mapping[str, str], *, form: ObjectForm = "whole"
) -> ListQuery:
    """Return the options of a list or a deletion; ``BadRequest`` or ``Invalid`` for bad values."""
    limit = _int_param(query, "limit") or 0
    if _bool_param(query, "sendInitialEvents") is not None:
        text = "sendInitialEvents is forbidden for list"
        raise statuses.invalid_option("sendInitialEvents", text)
    return ListQuery(
        selectors=_parse_selectors(namespace, query),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=limit,
        continue_token=query.get("continue", ""),
        form=form,
        include=_include_param(query, form),
    )


def start_watch(
    cluster: Cluster,
    resource: Resource,
    namespace: str | None,
    query: Mapping[str, str],
    *,
    now: float,
    form: ObjectForm = "whole",
) -> Watch:
    """Open the watch that a request asks for. The errors are those of ``Cluster.watch``."""
    with statuses.error_phase("watch"):
        timeout = _int_param(query, "timeoutSeconds")
    options = WatchQuery(
        selectors=_parse_selectors(namespace, query),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        bookmarks=bool(_bool_param(query, "allowWatchBookmarks")),
        send_initial_events=_bool_param(query, "sendInitialEvents"),
        timeout=timeout or None,
        form=form,
        include=_include_param(query, form),
    )
    return cluster.open_watch(resource, options, now=now)


def _parse_selectors(namespace: str | None, query: Mapping[str, str]) -> SelectorQuery:
    return SelectorQuery(
        namespace=namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        shard=query.get("shardSelector", ""),
    )


def _include_param(query: Mapping[str, str], form: ObjectForm) -> Include:
    """Return the part of the objects that a table has beside its cells, or raise ``BadRequest``."""
    requested = query.get("includeObject", "") or "Metadata"
    if form != "table":  # only tables have this parameter, so any value passes
        return "Metadata"
    if requested not in get_args(Include):
        raise statuses.bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{requested}\": must be 'Metadata', 'Object', 'None', or empty"
        )
    return cast("Include", requested)


def _bool_param(query: Mapping[str, str], name: str) -> bool | None:
    """Return a boolean parameter; apimachinery reads all but ``false`` and ``0`` as true."""
    text = query.get(name)
    return None if text is None else text.lower() not in ("false", "0")


def _int_param(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)
