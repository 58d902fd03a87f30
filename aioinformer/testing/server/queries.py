"""A URL query as a call: what a list or watch request says, in the model's terms.

Shared by the HTTP server and the list-watcher without sockets, so that both read a request the
same way. Parameters that aren't known are ignored, as the server ignores them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast, get_args

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.tables import Include, ObjectForm


def is_watch(query: Mapping[str, str]) -> bool:
    """Whether a request for a collection asks for a watch.

    Raises:
        BadRequest: the parameter is neither true nor false.
    """
    return bool(_bool_param(query, "watch"))


def is_watch_list(query: Mapping[str, str]) -> bool:
    """Whether a watch starts with all there is and marks its end (KEP-3157)."""
    return bool(_bool_param(query, "sendInitialEvents")) and bool(
        _bool_param(query, "allowWatchBookmarks")
    )


def required_version(query: Mapping[str, str]) -> int:
    """The resourceVersion that a server waits for before it answers; 0 for none.

    Lists and WatchLists of a version that isn't there yet wait for it. Other watches start at
    once, and are silent until then (recordings 20 and 37).
    """
    text = query.get("resourceVersion", "")
    if not re.fullmatch("[0-9]{1,20}", text) or query.get("continue"):
        return 0
    watching = query.get("watch", "false").lower() not in ("false", "0")
    if watching and query.get("sendInitialEvents") != "true":
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
    """The body that answers a list request; raises what ``Cluster.list`` does."""
    with statuses.error_phase("list"):
        limit = _int_param(query, "limit") or 0
        if _bool_param(query, "sendInitialEvents") is not None:
            text = "sendInitialEvents is forbidden for list"
            raise statuses.invalid_option("sendInitialEvents", text)
    include = _include_param(query) if form == "table" else "Metadata"
    return cluster.list(
        resource,
        namespace=namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=limit,
        continue_token=query.get("continue", ""),
        shard=query.get("shardSelector", ""),
        form=form,
        include=include,
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
    """The watch that a request asks for; raises what ``Cluster.watch`` does."""
    with statuses.error_phase("watch"):
        timeout = _int_param(query, "timeoutSeconds")
        bookmarks = bool(_bool_param(query, "allowWatchBookmarks"))
        send_initial_events = _bool_param(query, "sendInitialEvents")
    include = _include_param(query) if form == "table" else "Metadata"
    return cluster.watch(
        resource,
        now=now,
        namespace=namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        bookmarks=bookmarks,
        send_initial_events=send_initial_events,
        timeout=timeout or None,
        shard=query.get("shardSelector", ""),
        form=form,
        include=include,
    )


def _include_param(query: Mapping[str, str]) -> Include:
    """What of the objects a table shall have beside its cells.

    Raises:
        BadRequest: there is no such choice.
    """
    asked = query.get("includeObject", "") or "Metadata"
    if asked not in get_args(Include):
        raise statuses.bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{asked}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return cast("Include", asked)


def _bool_param(query: Mapping[str, str], name: str) -> bool | None:
    """A boolean parameter: apimachinery takes anything but ``false`` and ``0`` for true."""
    text = query.get(name)
    return None if text is None else text.lower() not in ("false", "0")


def _int_param(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)
