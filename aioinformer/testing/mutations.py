"""The detection of changes that a program makes to cached objects in place.

All readers and handlers share the one object that ``model=`` builds or ``convert=`` returns. A
change of a mutable one makes the cache differ from the server. client-go's tests find this with
``KUBE_CACHE_MUTATION_DETECTOR``.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.delivery.registration import Registration

MAX_LISTED = 5


class CacheMutated(AssertionError):
    """A program changed cached objects in place. ``keys`` are the keys of these objects.

    The text has the keys only, since objects may be secret. A changed object that was neither
    delivered nor is cached at the end is counted and has no key.
    """

    def __init__(self, informer: str, keys: list[ObjectKey], *, unnamed: int = 0) -> None:
        listed = ", ".join(map(str, keys[:MAX_LISTED])) or "an object"
        unlisted = max(0, len(keys) - MAX_LISTED) + (unnamed if keys else unnamed - 1)
        more = f" and {unlisted} more" if unlisted else ""
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

    Each object is copied before a handler receives the object, and compared with its copy at the
    end: objects of live events when they are cached, and objects of an initial list before the
    first of them is delivered. Enter the detector before other handlers are added. Changes before
    that are not detected. Frozen models pass, unless they contain something mutable that was
    changed.
    """

    def __init__(self, informer: SharedInformer[Any]) -> None:
        self._informer = informer
        self._registration: Registration | None = None
        self._copies: dict[int, tuple[Any, Any]] = {}
        """Objects and their copies, by the identity of the object."""
        self._keys: dict[int, ObjectKey] = {}
        self._initial = True

    def __enter__(self) -> Self:
        self._copy_cached()
        # The filter sees live events in the step that caches them, before any handler is called.
        self._registration = self._informer.add_handler(
            self._on_event, filter=self._observe, name="mutation detector"
        )
        return self

    def _observe(self, obj: object) -> bool:
        self._copy(obj)
        return True

    def _on_event(self, event: Event[Any]) -> None:
        self._keys[id(event.obj)] = event.key
        if self._initial:
            # A long initial list is delivered in turns with other handlers, so that another handler
            # may receive the second object before the detector does.
            self._initial = False
            self._copy_cached()

    def _copy_cached(self) -> None:
        lister = self._informer.lister.unsynced
        for key, obj in zip(lister.keys(), lister, strict=True):
            self._keys[id(obj)] = key
            self._copy(obj)

    def _copy(self, obj: object) -> None:
        if id(obj) not in self._copies and not isinstance(obj, KubeObject):
            # The object is kept, so that no other object gets its identity.
            self._copies[id(obj)] = obj, deepcopy(obj)

    def check(self) -> None:
        """Compare the objects with their copies; raise ``CacheMutated`` if some were changed."""
        self._copy_cached()  # the keys of objects whose events are still pending
        changed = [each for each, (obj, copy) in self._copies.items() if obj != copy]
        if changed:
            named = [self._keys[each] for each in changed if each in self._keys]
            keys = [*dict.fromkeys(named)]
            raise CacheMutated(self._informer.name, keys, unnamed=len(changed) - len(named))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._registration is not None:
            self._registration.remove()
        if error is None:  # an error of the block is the one to show
            self.check()

    def __repr__(self) -> str:
        return f"<MutationDetector of {self._informer.name} objects={len(self._copies)}>"
