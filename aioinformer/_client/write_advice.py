"""What to do about a write that the server refused: for ``refusals``, as ``advice`` is for reads.

Pure: what the server says and what was asked in, half a sentence out. What is advised follows from
codes, reasons and the words of the API machinery (``apierrors``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from aioinformer._core.writes import Method
from aioinformer.errors import Status

__all__ = ["TARGET", "about_refused_write", "causes_of"]

TARGET = re.compile(
    r"/(?:api/[^/]+|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[^/]+))?)?$"
)
"""The end of the path of an object, of a part of one, or of the collection that one is created in;
a proxy may have put something before it."""

VERBS: Mapping[Method, str] = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
"""What RBAC calls them."""

APPLY_CONFLICT = "FieldManagerConflict"
"""The reason of a cause that names a field of another manager's."""

CAUSES = 5
"""Causes that are told beyond those in the server's sentence."""


def about_refused_write(status: Status, path: str, method: Method, user: str = "") -> str:
    """What to do about it; empty if there is nothing to say.

    Args:
        status: what the server says.
        path: what was asked for.
        method: how.
        user: who asked, as the server calls them, if that may be told.
    """
    parts = [_untold_causes(status), _advice(status, path, method, user)]
    return "; ".join(part for part in parts if part)


def _advice(status: Status, path: str, method: Method, user: str) -> str:
    match status.code:
        case 403 if status.reason:  # else it isn't the API server who says so
            return _about_forbidden(path, method, user)
        case 404:
            return _about_missing(status, path)
        case 405:
            return f"objects of this resource can't be asked to {VERBS[method]}"
        case 409 if status.reason == "AlreadyExists":
            return "read or patch the one that is there, or apply, which does either"
        case 409:
            return _about_conflict(status)
        case _:
            return ""


def _about_conflict(status: Status) -> str:
    if any(cause.get("reason") == APPLY_CONFLICT for cause in causes_of(status)):
        return "leave those fields out, or take them over with force=True"
    if "UID" in status.message:
        return "the one that was meant is gone: read again which one there is"
    return "read the object again and repeat the change: retry_on_conflict does"


def _about_forbidden(path: str, method: Method, user: str) -> str:
    found = TARGET.search(path)
    if found is None:
        return ""
    asked = f"{found['plural']}.{found['group']}" if found["group"] else found["plural"]
    named = shlex.quote(f"{asked}/{found['name']}" if found["name"] else asked)
    options = {"-n ": found["namespace"], "--subresource=": found["part"], "--as=": user}
    given = "".join(f" {name}{shlex.quote(text)}" for name, text in options.items() if text)
    verb = VERBS[method]
    what = f"{asked}/{found['part']}" if found["part"] else asked
    return (
        f"a Role or ClusterRole must allow {verb} on {what}: check with "
        f"`kubectl auth can-i {verb} {named}{given}`"
    )


def _about_missing(status: Status, path: str) -> str:
    found = TARGET.search(path)
    if found is None:
        return ""
    if status.details.get("kind") == "namespaces" and found["plural"] != "namespaces":
        return "create the namespace first"
    if found["part"]:
        return (
            f"is the object there, and does the resource have the subresource {found['part']!r}? "
            "A CustomResourceDefinition must declare it"
        )
    if status.details.get("name"):
        return ""  # no such object, as the server says
    option = f" --api-group={shlex.quote(found['group'])}" if found["group"] else ""
    return (
        "no such resource, perhaps not yet: is its CustomResourceDefinition installed? "
        f"`kubectl api-resources{option}` lists what there is"
    )


def _untold_causes(status: Status) -> str:
    """The causes that the server's sentence leaves out."""
    told = [
        f"{cause['field']}: {cause['message']}" if cause.get("field") else str(cause["message"])
        for cause in causes_of(status)
        if cause.get("message") and str(cause["message"]) not in status.message
    ]
    more = f", and {len(told) - CAUSES} more" if len(told) > CAUSES else ""
    return ", ".join(told[:CAUSES]) + more


def causes_of(status: Status) -> Iterator[dict[str, Any]]:
    """Those in the details that have the form of causes; a server may send anything."""
    sent: Any = status.details.get("causes")
    for cause in cast("Iterable[Any]", sent) if isinstance(sent, list) else ():
        if isinstance(cause, dict):
            yield cast("dict[str, Any]", cause)
