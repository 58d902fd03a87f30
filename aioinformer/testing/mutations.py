"""The detection of changes that a program makes to cached objects in place.

A ``KubeObject`` is read-only. What ``model=`` builds or ``convert=`` returns is the program's own
type: all readers and handlers share the one object, and a mutable one can be changed by any of
them, so that the cache no longer agrees with the server. client-go's tests find this with
``KUBE_CACHE_MUTATION_DETECTOR``, which compares cached objects with copies.
"""

from __future__ import annotations

from copy import deepcopy
from types import TracebackType
from typing import Any, Self

from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.informer import SharedInformer

__all__ = ["CacheMutated", "MutationDetector"]

MAX_LISTED = 5
"""Keys in the text of an error."""


class CacheMutated(AssertionError):
    """A program changed cached objects in place. ``keys`` are the keys of these objects.

    The text has the keys only, since objects may be secret.
    """

    def __init__(self, informer: str, keys: list[ObjectKey]) -> None:
        listed = ", ".join(map(str, keys[:MAX_LISTED]))
        more = f" and {len(keys) - MAX_LISTED} more" if len(keys) > MAX_LISTED else ""
        super().__init__(
            f"cached objects of {informer} were changed in place: {listed}{more}; copy an object "
            "before changing it, or use a frozen model"
        )
        self.keys = keys


class MutationDetector:
    """Fails a test whose program changes cached objects in place.

    ::

        with MutationDetector(pods):
            ...  # run the handlers and reconcilers under test

    Each object that the informer delivers is copied, and compared with its copy at the end. Enter
    the detector before other handlers are added, because the copy is made when the event is
    delivered. Changes before that, by a reader of the cache, are not detected. Objects that
    pending events were merged over are not copied either. Frozen models pass, unless they contain
    something mutable that was changed.
    """

    def __init__(self, informer: SharedInformer[Any]) -> None:
        """Prepare to watch the objects of ``informer``."""
        self._informer = informer
        self._registration: Registration | None = None
        self._copies: list[tuple[ObjectKey, Any, Any]] = []

    def __enter__(self) -> Self:
        self._registration = self._informer.add_handler(self._copy, name="mutation detector")
        return self

    def _copy(self, event: Event[Any]) -> None:
        if not isinstance(event, Deleted) and not isinstance(event.obj, KubeObject):
            self._copies.append((event.key, event.obj, deepcopy(event.obj)))

    def check(self) -> None:
        """Compare the objects with their copies now.

        Raises:
            CacheMutated: objects were changed.
        """
        changed = {key: None for key, obj, copy in self._copies if obj != copy}
        if changed:
            raise CacheMutated(self._informer.name, [*changed])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._registration is not None:
            self._registration.remove()
        if error is None:  # an error of the block is the one to show
            self.check()

    def __repr__(self) -> str:
        return f"<MutationDetector of {self._informer.name} objects={len(self._copies)}>"
