"""``ResourceList``: everything that a server serves, as a list that a program can search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from aioinformer._client.discovery.documents import ServedResource
from aioinformer._core.quantities import quantity


class ResourceList(Sequence[ServedResource]):
    """The resources of a server, in its order: the core group first, preferred versions first."""

    __slots__ = ("_served", "unread")

    def __init__(self, served: Sequence[ServedResource], unread: Sequence[str] = ()) -> None:
        self._served = tuple(served)
        self.unread = tuple(unread)
        """The paths of discovery documents that could not be read, mostly of aggregated APIs that
        don't answer: the list lacks their resources."""

    def find(
        self,
        *,
        name: str = "",
        kind: str = "",
        group: str | None = None,
        category: str = "",
        verbs: Sequence[str] = (),
        namespaced: bool | None = None,
    ) -> ResourceList:
        """Return the resources that fit all given conditions.

        Args:
            name: a plural, singular, short name or kind, in any case.
            kind: the kind of one object, in exact spelling.
            group: the API group; empty for the core group.
            category: a category, such as ``all``.
            verbs: verbs that the resource must support. A resource whose document lists no verbs
                fits.
            namespaced: True for resources in namespaces, False for those of the cluster.

        Raises:
            TypeError: ``verbs`` is a text.

        Example:
            ``(await client.discover()).find(verbs=["list", "watch"], namespaced=True)``
        """
        if isinstance(verbs, str):
            raise TypeError(f"verbs is a sequence of texts: verbs=[{verbs!r}]")
        return ResourceList(
            [
                each
                for each in self._served
                if (not name or name.lower() in each.resource.names())
                and kind in ("", each.resource.kind)
                and group in (None, each.resource.group)
                and (not category or category in each.categories)
                and (each.verbs is None or each.verbs.issuperset(verbs))
                and namespaced in (None, each.resource.namespaced)
            ],
            self.unread,
        )

    @overload
    def __getitem__(self, index: int) -> ServedResource: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ServedResource]: ...
    def __getitem__(self, index: int | slice) -> ServedResource | Sequence[ServedResource]:
        return self._served[index]

    def __len__(self) -> int:
        return len(self._served)

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(self._served)

    def __repr__(self) -> str:
        unread = f", {quantity(len(self.unread), 'document')} unread" if self.unread else ""
        return f"<ResourceList: {len(self)}{unread}>"
