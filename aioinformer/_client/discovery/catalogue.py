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

from aioinformer._client.discovery.documents import ServedResource, version_path
from aioinformer._core.codec.status_decoder import one_line
from aioinformer._core.objects.resources import Resource, is_path_segment
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

__all__ = ["Catalogue", "copy_error", "split_group_version"]

MAX_SUGGESTIONS = 3
"""Resources that are suggested for a name that doesn't exist."""

MAX_SIMILAR_NAMES = 3 * MAX_SUGGESTIONS
"""Names that are compared to the end: one resource may be near by its plural and a short name."""

MAX_CANDIDATES = 5
"""Candidates that a message names; a hundred groups may have a resource of one name."""

MAX_LIST_LENGTH = 200
"""Characters shown of a list in a server's words."""

SIMILARITY_CUTOFF = 0.7
"""How alike they are (difflib's ratio): one letter of four may be wrong."""

NAMES_PER_STEP = 200
"""Names that are compared with it in one step, at about 7 µs each."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The resources of a server, in its order: core first, preferred versions first."""

    served: tuple[ServedResource, ...] = ()
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
        found = [each.resource for each in self._find_by_name(head, rest) if not each.lacks]
        by_group = {each.group: each for each in reversed(found)}  # the first version wins
        if len(by_group) < 2 or "" in by_group:
            return by_group.get("") or next(iter(by_group.values()), None)
        named = [each for each in by_group.values() if head not in _exclusive_short_names(each)]
        if len(named) == 1:
            return named[0]
        raise _ambiguous_error(name, named or list(by_group.values()))

    def union(self, other: Catalogue) -> Catalogue:
        """Both together. What ``other`` describes is no longer unread."""
        read = {version_path(each.resource.api_version) for each in other.served}
        unread = {path: error for path, error in self.unread.items() if path not in read}
        served = tuple(dict.fromkeys((*self.served, *other.served)))
        return Catalogue(served, {**unread, **other.unread})

    def covers_group(self, group: str) -> bool:
        """Whether all of a group is described here, or that there is no such group."""
        root = "/apis" if group else "/api/v1"
        return not any(_describes_group(group, path) or path == root for path in self.unread)

    # -- what is not found ---------------------------------------------------------------------

    def find_similar(self, name: str) -> Generator[None, None, tuple[str, ...]]:
        """The plurals of what may be meant by a name that isn't there, the nearest first.

        In steps of a millisecond or two: clusters with a thousand custom resources exist, and
        comparing a name with all of theirs takes 50.
        """
        names, near = self._candidate_names(dotted="." in name), dict[str, str]()
        while some := dict(islice(names, NAMES_PER_STEP)):
            known = {**some, **near}
            alike = get_close_matches(
                name.lower(), known, n=MAX_SIMILAR_NAMES, cutoff=SIMILARITY_CUTOFF
            )
            near = {each: known[each] for each in alike}
            yield
        return tuple(dict.fromkeys(near.values()))[:MAX_SUGGESTIONS]

    def make_lookup_error(
        self, name: str, suggestions: tuple[str, ...] = (), *, location: str = ""
    ) -> UsageError | FetchError:
        """The error for a name that ``find`` doesn't find.

        Args:
            name: it.
            suggestions: what may be meant by it.
            location: the server's URL, and the file and context that name it, for the message.
        """
        head, _, rest = name.lower().partition(".")
        for each in self._find_by_name(head, rest):
            return _unwatchable_error(name, each)
        for path, error in self.unread.items():
            if error is None or isinstance(error, NotFound):
                continue
            if (
                any(_describes_group(group, path) for group, _ in split_group_version(name))
                if rest
                else _lists_resources(path)
            ):
                return copy_error(error)  # whether there is one can't be known
        server = f"the server {location}".rstrip()
        return UnknownResource(
            f"{server} has no resource called {name!r}{self._describe_hints(name, suggestions)}"
        )

    def _describe_hints(self, name: str, suggestions: tuple[str, ...]) -> str:
        hints = f" (did you mean {' or '.join(suggestions)}?)" if suggestions else ""
        if dark := [path for path in self.unread if path.count("/") == 3]:
            hints += f"; it did not describe {one_line(', '.join(path[6:] for path in dark), MAX_LIST_LENGTH)}"
        listless = "/apis" in self.unread
        if listless and "." not in name:
            doubt = "" if self.served else ", if it is a Kubernetes API server at all"
            return f"{hints}; it has no list of its groups, so ask for {name}.GROUP{doubt}"
        if listless and not self.served:
            return f"{hints}; it lists nothing at all: is it a Kubernetes API server?"
        return f"{hints}; `kubectl api-resources` lists what it has"

    def _candidate_names(self, *, dotted: bool) -> Iterator[tuple[str, str]]:
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

    def _find_by_name(self, head: str, rest: str) -> Iterator[ServedResource]:
        for each in self.served:
            if head in each.resource.names() and _matches_suffix(each.resource, rest):
                yield each

    def __repr__(self) -> str:
        dark = f", {len(self.unread)} documents unread" if self.unread else ""
        return f"<Catalogue of {len(self.served)} resources{dark}>"


def _exclusive_short_names(resource: Resource) -> set[str]:
    plain = {resource.plural, resource.singular, resource.kind.lower()}
    return {name.lower() for name in resource.short_names} - plain


def _matches_suffix(resource: Resource, rest: str) -> bool:
    """Whether ``rest`` is empty, or the resource's group, or its version and group."""
    versioned = f"{resource.version}.{resource.group}"  # "v1." in the core group, as for kubectl
    return rest in ("", resource.group, versioned, versioned.rstrip("."))


def _lists_resources(path: str) -> bool:
    """Whether a document describes much, so that any bare name may be in it."""
    return path in ("/apis", "/api/v1")


def _describes_group(group: str, path: str) -> bool:
    """Whether a document is a group's, or that of one of its versions."""
    return f"{path}/".startswith(f"/apis/{group}/" if group else "/api/")


# -- names that carry their group --------------------------------------------------------------


def split_group_version(name: str) -> Iterator[tuple[str, str]]:
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
        if all(is_path_segment(part) for part in pair if part) and any(pair):
            yield pair


# -- errors ------------------------------------------------------------------------------------


def copy_error(error: FetchError) -> FetchError:
    """An error to raise or keep in place of one that was caught: without that one's traceback."""
    if isinstance(error, ServerError):
        return server_error(
            error.status, phase=error.phase, target=error.target, advice=error.advice
        )
    return type(error)(str(error), phase=error.phase)


def _ambiguous_error(name: str, found: list[Resource]) -> AmbiguousResource:
    choices = tuple(sorted({str(each) for each in found}))
    more = (
        f" or one of {len(choices) - MAX_CANDIDATES} more" if len(choices) > MAX_CANDIDATES else ""
    )
    said = (
        f"several resources are called {name!r}: say {' or '.join(choices[:MAX_CANDIDATES])}{more}"
    )
    return AmbiguousResource(said, candidates=choices)


def _unwatchable_error(name: str, served: ServedResource) -> UnwatchableResource:
    has = one_line(", ".join(sorted(served.verbs or ())), MAX_LIST_LENGTH) or "nothing"
    said = (
        f"{name!r} ({served.resource} in {served.resource.api_version}) can't be kept in a cache: "
        f"the server doesn't let anybody {' or '.join(served.lacks)} it (it allows {has})"
    )
    return UnwatchableResource(said, lacks=served.lacks)
