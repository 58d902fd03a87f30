"""What a server serves, and a resource found in it by any of its names.

Sans-I/O. ``documents`` reads what a server says, ``discovery`` asks it and decides how long an
answer holds. Here is what a name means: which group wins, which version, what is ambiguous, what
was perhaps meant.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

from aioinformer._client.discovery.documents import Served, version_path
from aioinformer._core.codec.status_decoder import one_line
from aioinformer._core.objects.resources import Resource, is_segment
from aioinformer.errors import (
    AmbiguousResource,
    FetchError,
    NotFound,
    ServerError,
    UnknownResource,
    UnwatchableResource,
    UsageError,
    server_error,
)

__all__ = ["Catalogue", "places", "remembered"]

NEAR = 3
"""Resources that are suggested for a name that doesn't exist."""

NAMES = 3 * NEAR
"""Names that are compared to the end: one resource may be near by its plural and a short name."""

LISTED = 5
"""Candidates that a message names; a hundred groups may have a resource of one name."""

SHOWN = 200
"""Characters shown of a list in a server's words."""

ALIKE = 0.7
"""How alike they are (difflib's ratio): one letter of four may be wrong."""

COMPARED = 200
"""Names that are compared with it in one step, at about 7 µs each."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The resources of a server, in its order: core first, preferred versions first."""

    served: tuple[Served, ...] = ()
    unread: Mapping[str, FetchError | None] = field(default_factory=dict[str, FetchError | None])
    """Documents that didn't come, by path, and why. ``None`` for an aggregated API of which the
    server itself says that it doesn't answer."""

    def find(self, name: str) -> Resource | None:
        """The resource of that name which can be listed and watched, or ``None``.

        The core group wins; else a plural, singular or kind over somebody's short name.

        Raises:
            AmbiguousResource: several groups have it. Says how to name each.
        """
        head, _, rest = name.lower().partition(".")
        found = [each.resource for each in self._called(head, rest) if not each.lacks]
        by_group = {each.group: each for each in reversed(found)}  # the first version wins
        if len(by_group) < 2 or "" in by_group:
            return by_group.get("") or next(iter(by_group.values()), None)
        named = [each for each in by_group.values() if head not in _short(each)]
        if len(named) == 1:
            return named[0]
        raise _ambiguous(name, named or list(by_group.values()))

    def with_more(self, more: Catalogue) -> Catalogue:
        """Both together. What ``more`` describes is no longer unread."""
        read = {version_path(each.resource.api_version) for each in more.served}
        unread = {path: error for path, error in self.unread.items() if path not in read}
        served = tuple(dict.fromkeys((*self.served, *more.served)))
        return Catalogue(served, {**unread, **more.unread})

    def knows(self, group: str) -> bool:
        """Whether all of a group is described here, or that there is no such group."""
        root = "/apis" if group else "/api/v1"
        return not any(_is_about(group, path) or path == root for path in self.unread)

    # -- what is not found ---------------------------------------------------------------------

    def similar(self, name: str) -> Generator[None, None, tuple[str, ...]]:
        """The plurals of what may be meant by a name that isn't there, the nearest first.

        In steps of a millisecond or two: clusters with a thousand custom resources exist, and
        comparing a name with all of theirs takes 50.
        """
        names, near = self._names(dotted="." in name), dict[str, str]()
        while some := dict(islice(names, COMPARED)):
            known = {**some, **near}
            alike = get_close_matches(name.lower(), known, n=NAMES, cutoff=ALIKE)
            near = {each: known[each] for each in alike}
            yield
        return tuple(dict.fromkeys(near.values()))[:NEAR]

    def missing(
        self, name: str, near: tuple[str, ...] = (), *, where: str = ""
    ) -> UsageError | FetchError:
        """The error for a name that ``find`` doesn't find.

        Args:
            name: it.
            near: what may be meant by it.
            where: the server's URL, and the file and context that name it, for the message.
        """
        head, _, rest = name.lower().partition(".")
        for each in self._called(head, rest):
            return _unwatchable(name, each)
        for path, error in self.unread.items():
            if error is None or isinstance(error, NotFound):
                continue
            if any(_is_about(group, path) for group, _ in places(name)) if rest else _is_list(path):
                return remembered(error)  # whether there is one can't be known
        server = f"the server {where}".rstrip()
        return UnknownResource(f"{server} has no resource called {name!r}{self._hints(name, near)}")

    def _hints(self, name: str, near: tuple[str, ...]) -> str:
        hints = f" (did you mean {' or '.join(near)}?)" if near else ""
        if dark := [path for path in self.unread if path.count("/") == 3]:
            hints += (
                f"; it did not describe {one_line(', '.join(path[6:] for path in dark), SHOWN)}"
            )
        listless = "/apis" in self.unread
        if listless and "." not in name:
            doubt = "" if self.served else ", if it is a Kubernetes API server at all"
            return f"{hints}; it has no list of its groups, so ask for {name}.GROUP{doubt}"
        if listless and not self.served:
            return f"{hints}; it lists nothing at all: is it a Kubernetes API server?"
        return f"{hints}; `kubectl api-resources` lists what it has"

    def _names(self, *, dotted: bool) -> Iterator[tuple[str, str]]:
        """Plurals and short names, or plurals with their group; with each, what to suggest."""
        for each in self.served:
            if each.lacks:
                continue
            plural = each.resource.plural
            if dotted:
                plural = f"{plural}.{each.resource.group or each.resource.version}"
                yield plural, plural
            else:
                yield from ((short, plural) for short in (plural, *each.resource.short_names))

    def _called(self, head: str, rest: str) -> Iterator[Served]:
        for each in self.served:
            if head in each.resource.names() and _in(each.resource, rest):
                yield each

    def __repr__(self) -> str:
        dark = f", {len(self.unread)} documents unread" if self.unread else ""
        return f"<Catalogue of {len(self.served)} resources{dark}>"


def _short(resource: Resource) -> set[str]:
    plain = {resource.plural, resource.singular, resource.kind.lower()}
    return {name.lower() for name in resource.short_names} - plain


def _in(resource: Resource, rest: str) -> bool:
    """Whether ``rest`` is empty, or the resource's group, or its version and group."""
    versioned = f"{resource.version}.{resource.group}"  # "v1." in the core group, as for kubectl
    return rest in ("", resource.group, versioned, versioned.rstrip("."))


def _is_list(path: str) -> bool:
    """Whether a document describes much, so that any bare name may be in it."""
    return path in ("/apis", "/api/v1")


def _is_about(group: str, path: str) -> bool:
    """Whether a document is a group's, or that of one of its versions."""
    return f"{path}/".startswith(f"/apis/{group}/" if group else "/api/")


# -- names that carry their group --------------------------------------------------------------


def places(name: str) -> Iterator[tuple[str, str]]:
    """Group and version that a name may carry, the likelier pair first; no version for any.

    ``widgets.example.com`` may mean the group ``example.com``, or, though nobody names them so,
    version ``example`` of the group ``com``. ``pods.v1`` is in the core group.
    """
    rest = name.lower().partition(".")[2]
    version, dot, group = rest.partition(".")
    versioned, whole = (group, version), (rest, "")
    if version[:1] == "v" and version[1:2].isdecimal():
        pairs = [versioned, whole] if dot else [versioned]
    else:
        pairs = [whole, versioned] if dot else [whole]
    for pair in pairs:
        if all(is_segment(part) for part in pair if part) and any(pair):
            yield pair


# -- errors ------------------------------------------------------------------------------------


def remembered(error: FetchError) -> FetchError:
    """An error to raise or keep in place of one that was caught: without that one's traceback."""
    if isinstance(error, ServerError):
        return server_error(
            error.status, phase=error.phase, target=error.target, advice=error.advice
        )
    return type(error)(str(error), phase=error.phase)


def _ambiguous(name: str, found: list[Resource]) -> AmbiguousResource:
    choices = tuple(sorted({str(each) for each in found}))
    more = f" or one of {len(choices) - LISTED} more" if len(choices) > LISTED else ""
    said = f"several resources are called {name!r}: say {' or '.join(choices[:LISTED])}{more}"
    return AmbiguousResource(said, candidates=choices)


def _unwatchable(name: str, served: Served) -> UnwatchableResource:
    has = one_line(", ".join(sorted(served.verbs or ())), SHOWN) or "nothing"
    said = (
        f"{name!r} ({served.resource} in {served.resource.api_version}) can't be kept in a cache: "
        f"the server doesn't let anybody {' or '.join(served.lacks)} it (it allows {has})"
    )
    return UnwatchableResource(said, lacks=served.lacks)
