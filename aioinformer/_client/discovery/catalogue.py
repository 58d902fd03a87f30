"""``Catalogue``: the resources of a server, and the lookup of a resource by any of its names.

The catalogue defines the meaning of a name: which group and version take precedence, when a name is
ambiguous, and which existing names are similar to an unknown one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

from aioinformer._client.discovery.documents import ServedResource, version_path
from aioinformer._core.objects.resources import Resource, is_path_segment
from aioinformer._core.quantities import quantity
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
from aioinformer.errors.texts import one_line

MAX_SUGGESTIONS = 3

MAX_SIMILAR_NAMES = 3 * MAX_SUGGESTIONS
"""Number of similar names to find. A resource may have several: its plural and short names."""

MAX_CANDIDATES = 5
"""Number of candidates in a message; a hundred groups may have a resource of the same name."""

MAX_LIST_LENGTH = 200
"""Characters shown of a list whose items come from the server."""

SIMILARITY_CUTOFF = 0.7
"""Minimum similarity (difflib's ratio) of a suggestion: one letter of four may be wrong."""

HEAD_CUTOFF = 0.6
"""The same for the part before the group, which is short, so that one letter counts more."""

NAMES_PER_STEP = 200
"""Number of names that are compared in one step, at about 7 µs each."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The resources of a server, in its order: the core group first, preferred versions first."""

    served: tuple[ServedResource, ...] = ()
    unread: Mapping[str, FetchError | None] = field(default_factory=dict[str, FetchError | None])
    """The documents that could not be read, by path, with the error; ``None`` for an aggregated API
    that does not answer according to the server itself."""

    def find(self, name: str) -> Resource | None:
        """Return the resource of that name that can be listed and watched, or ``None``.

        The core group takes precedence over other groups, and a plural, singular or kind over a
        short name.

        Raises:
            AmbiguousResource: several groups have a resource of that name. The message says how to
                name each.
        """
        head, _, rest = name.lower().partition(".")
        found = [each.resource for each in self._find_by_name(head, rest) if not each.lacks]
        # The first version takes precedence.
        by_group = {each.group: each for each in reversed(found)}
        if len(by_group) < 2 or "" in by_group:
            return by_group.get("") or next(iter(by_group.values()), None)
        named = [each for each in by_group.values() if head not in _exclusive_short_names(each)]
        if len(named) == 1:
            return named[0]
        raise _ambiguous_error(name, named or list(by_group.values()))

    def union(self, other: Catalogue) -> Catalogue:
        """Return both catalogues as one, without unread documents that ``other`` describes."""
        read = {version_path(each.resource.api_version) for each in other.served}
        unread = {path: error for path, error in self.unread.items() if path not in read}
        served = tuple(dict.fromkeys((*self.served, *other.served)))
        return Catalogue(served, {**unread, **other.unread})

    def covers_group(self, group: str) -> bool:
        """Return True if no document about the group is unread, so that it is known completely."""
        root = "/apis" if group else "/api/v1"
        return not any(_describes_group(group, path) or path == root for path in self.unread)

    # -- unknown names -------------------------------------------------------------------------

    def find_similar(self, name: str) -> Generator[None, None, tuple[str, ...]]:
        """Return the plurals of resources with a similar name, the most similar first.

        The generator yields after each step of one or two milliseconds. In clusters with a thousand
        custom resources the whole comparison takes 50 ms.
        """
        names, near = self._candidate_names(dotted="." in name), dict[str, str]()
        while some := dict(islice(names, NAMES_PER_STEP)):
            known = {**some, **near}
            alike = get_close_matches(
                name.lower(), known, n=MAX_SIMILAR_NAMES, cutoff=SIMILARITY_CUTOFF
            )
            near = {each: known[each] for each in alike if _have_similar_heads(name, each)}
            yield
        return tuple(dict.fromkeys(near.values()))[:MAX_SUGGESTIONS]

    def make_lookup_error(
        self, name: str, suggestions: tuple[str, ...] = (), *, location: str = ""
    ) -> UsageError | FetchError:
        """Return the error for a name that ``find`` doesn't find.

        ``location`` is the server's URL, and the file and context that name the server.
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
                else path in ("/apis", "/api/v1")
            ):
                return copy_error(error)  # this document may describe the resource
        server = f"the server {location}".rstrip()
        return UnknownResource(
            f"{server} has no resource called {name!r}{self._describe_hints(name, suggestions)}"
        )

    def _describe_hints(self, name: str, suggestions: tuple[str, ...]) -> str:
        hints = f" (did you mean {' or '.join(suggestions)}?)" if suggestions else ""
        if versions := [path[len("/apis/") :] for path in self.unread if path.count("/") == 3]:
            undescribed = one_line(", ".join(versions), MAX_LIST_LENGTH)
            hints += f"; it did not describe {undescribed}"
        if "/apis" not in self.unread:
            return f"{hints}; `kubectl api-resources` lists what the server has"
        if "." not in name:
            doubt = "" if self.served else ", if it is a Kubernetes API server at all"
            return f"{hints}; it doesn't list its groups, so ask for {name}.GROUP{doubt}"
        if not self.served:
            return f"{hints}; it lists no resources at all: is it a Kubernetes API server?"
        return f"{hints}; `kubectl api-resources` lists what the server has"

    def _candidate_names(self, *, dotted: bool) -> Iterator[tuple[str, str]]:
        """Yield names to compare, each with the name to suggest.

        The names are plurals and short names, or plurals with their group if ``dotted``.
        """
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
        unread = f", {quantity(len(self.unread), 'document')} unread" if self.unread else ""
        return f"<Catalogue of {quantity(len(self.served), 'resource')}{unread}>"


def _exclusive_short_names(resource: Resource) -> set[str]:
    plain = {resource.plural, resource.singular, resource.kind.lower()}
    return {name.lower() for name in resource.short_names} - plain


def _have_similar_heads(name: str, other: str) -> bool:
    """Return True if the parts before the groups are similar, not only the groups."""
    head, _, group = name.lower().partition(".")
    other_head = other.partition(".")[0]
    return not group or bool(get_close_matches(head, [other_head], cutoff=HEAD_CUTOFF))


def _matches_suffix(resource: Resource, rest: str) -> bool:
    versioned = f"{resource.version}.{resource.group}"  # "v1." in the core group, as for kubectl
    return rest in ("", resource.group, versioned, versioned.rstrip("."))


def _describes_group(group: str, path: str) -> bool:
    return f"{path}/".startswith(f"/apis/{group}/" if group else "/api/")


# -- names with a group ------------------------------------------------------------------------


def split_group_version(name: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of group and version that a name may contain, the most likely pair first.

    An empty version means any version. ``widgets.example.com`` may mean the group ``example.com``,
    or, which is unusual, version ``example`` of the group ``com``. ``pods.v1`` is in the core
    group.
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
    """Return a copy of an error without its traceback, to be kept or raised again."""
    if isinstance(error, ServerError):
        return server_error(
            error.status, phase=error.phase, target=error.target, advice=error.advice
        )
    return type(error)(str(error), phase=error.phase)


def _ambiguous_error(name: str, found: list[Resource]) -> AmbiguousResource:
    choices = tuple(sorted({str(each) for each in found}))
    listed = " or ".join(choices[:MAX_CANDIDATES])
    if (more := len(choices) - MAX_CANDIDATES) > 0:
        listed += f" or one of {more} more"
    text = f"several resources are called {name!r}: use {listed}"
    return AmbiguousResource(text, candidates=choices)


def _unwatchable_error(name: str, served: ServedResource) -> UnwatchableResource:
    allowed = one_line(", ".join(sorted(served.verbs or ())), MAX_LIST_LENGTH) or "nothing"
    return UnwatchableResource(
        f"{name!r} ({served.resource} in {served.resource.api_version}) can't be cached: the "
        f"resource doesn't support {' or '.join(served.lacks)} (it supports {allowed})",
        lacks=served.lacks,
    )
