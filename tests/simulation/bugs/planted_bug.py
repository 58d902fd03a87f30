"""``PlantedBug``: a method of the library replaced by a wrong one, as long as a test needs it.

A bug shows that the checks notice it. Its method is replaced in the class, so that every object of
the class has the bug, however that object was made::

    @planted_bug(Mailbox, "pop", promises={6})
    def a_listener_is_synced_early(pop: Original, box: Any) -> Any:
        event = pop(box)
        box.synced = box.synced or event is not None
        return event

The name of the function says what goes wrong. Its first argument is the method that the library
has; the others are those of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeAlias

Original: TypeAlias = Callable[..., Any]
"""The method of the library that a bug replaces."""
Wrong: TypeAlias = Callable[..., Any]
"""Called with the original method, and then as that method."""


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug, and the promises one of which it breaks."""

    name: str
    promises: frozenset[int]
    patches: list[tuple[type, str, Wrong]] = field(default_factory=list[tuple[type, str, Wrong]])
    """The classes, the names of their methods, and what takes the place of these."""

    def also(self, owner: type, method: str) -> Callable[[Wrong], PlantedBug]:
        """Return a decorator that adds the replacement of another method to the bug."""

        def add(wrong: Wrong) -> PlantedBug:
            self.patches.append((owner, method, wrong))
            return self

        return add

    @contextmanager
    def planted(self) -> Generator[None]:
        """Give the library the bug within a ``with`` block.

        Raises:
            KeyError: a class no longer has the method, so that the bug would have no effect.
        """
        with ExitStack() as stack:
            for owner, method, wrong in self.patches:
                original = vars(owner)[method]
                stack.callback(setattr, owner, method, original)
                setattr(owner, method, _around(original, wrong))
            yield

    def __str__(self) -> str:
        return self.name


def planted_bug(
    owner: type, method: str, *, promises: Collection[int] = ()
) -> Callable[[Wrong], PlantedBug]:
    """Return a decorator that makes a bug of a function with the name of the bug.

    Args:
        owner: the class whose method is wrong.
        method: the name of the method or property.
        promises: the numbers of the promises that may be seen to be broken first.
    """

    def make(wrong: Wrong) -> PlantedBug:
        name = getattr(wrong, "__name__", "").replace("_", " ")
        return PlantedBug(name, frozenset(promises)).also(owner, method)(wrong)

    return make


def other_options(
    name: str, owner: type, method: str, promises: Collection[int], **wrong: object
) -> PlantedBug:
    """Return the bug of a method that is called with other options than those that it was given."""

    def replaced(original: Original, *args: Any, **options: Any) -> Any:
        return original(*args, **{**options, **wrong})

    return PlantedBug(name, frozenset(promises)).also(owner, method)(replaced)


def planted_bugs(module: Mapping[str, object]) -> list[PlantedBug]:
    """Return the bugs among the names of a module."""
    return [
        each
        for name, each in module.items()
        if isinstance(each, PlantedBug) and not name.startswith("_")
    ]


def _around(original: Any, wrong: Wrong) -> Any:
    """Return a method, or a property, that calls ``wrong`` with the original first."""
    if isinstance(original, property):
        return property(lambda part: wrong(original.fget, part))

    @wraps(original)
    def replaced(*args: Any, **options: Any) -> Any:
        return wrong(original, *args, **options)

    return replaced
