"""A URL query as a call: what a list or watch request says, in the model's terms.

Shared by the HTTP server and the list-watcher without sockets, so that both read a request the
same way. Parameters that aren't known are ignored, as the server ignores them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aioinformer._core.resources import Resource
from aioinformer.testing import statuses
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.watches import Watch


def is_watch(query: Mapping[str, str]) -> bool:
    """Whether a request for a collection asks for a watch.

    Raises:
        BadRequest: the parameter is neither true nor false.
    """
    return bool(_flag(query, "watch"))


def list_page(
    cluster: Cluster, resource: Resource, namespace: str | None, query: Mapping[str, str]
) -> bytes:
    """The body that answers a list request; raises what ``Cluster.list`` does."""
    with statuses.during("list"):
        limit = _number(query, "limit") or 0
        if _flag(query, "sendInitialEvents") is not None:
            text = "sendInitialEvents is forbidden for list"
            raise statuses.invalid_option("sendInitialEvents", text)
    return cluster.list(
        resource,
        namespace=namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=limit,
        continue_token=query.get("continue", ""),
    )


def start_watch(
    cluster: Cluster,
    resource: Resource,
    namespace: str | None,
    query: Mapping[str, str],
    *,
    now: float,
) -> Watch:
    """The watch that a request asks for; raises what ``Cluster.watch`` does."""
    with statuses.during("watch"):
        timeout = _number(query, "timeoutSeconds")
        bookmarks = bool(_flag(query, "allowWatchBookmarks"))
        send_initial_events = _flag(query, "sendInitialEvents")
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
    )


def _flag(query: Mapping[str, str], name: str) -> bool | None:
    """A boolean parameter: apimachinery takes anything but ``false`` and ``0`` for true."""
    text = query.get(name)
    return None if text is None else text.lower() not in ("false", "0")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)
