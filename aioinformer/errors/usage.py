"""What the calling program did wrong, or asked for although it can't be.

Trying again doesn't help with any of these. ``InformerError``, the base of everything that is
raised on purpose, is here as well: it has no better place, and everybody needs it.
"""

from __future__ import annotations

__all__ = [
    "AmbiguousResource",
    "ConfigurationError",
    "IndexFailed",
    "InformerError",
    "InvalidPath",
    "InvalidSelector",
    "NotComparable",
    "NotRunning",
    "NotSynced",
    "PathMismatch",
    "UnknownResource",
    "UnwatchableResource",
    "UsageError",
]


class InformerError(Exception):
    """Base of every exception that aioinformer raises on purpose."""


class UsageError(InformerError):
    """The calling program asked for something that can't be. Trying again doesn't help."""


class ConfigurationError(UsageError):
    """No usable kubeconfig, context or in-cluster files. The message says what was tried."""


class InvalidSelector(UsageError, ValueError):
    """A label or field selector that doesn't parse. The message marks where."""


class InvalidPath(UsageError, ValueError):
    """A path into an object that doesn't parse. The message marks where."""


class PathMismatch(UsageError, TypeError):
    """A strict path leads into a value of another shape, such as a key of a string."""


class UnknownResource(UsageError, LookupError):
    """No resource of that name, in the built-in table or on the server."""


class AmbiguousResource(UnknownResource):
    """Several groups have a resource of that name. ``candidates`` are names that have one each."""

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class UnwatchableResource(UsageError):
    """The resource exists, and can't be listed and watched: reviews, some metrics.

    ``lacks`` are the verbs that it would need.
    """

    def __init__(self, message: str, *, lacks: tuple[str, ...]) -> None:
        super().__init__(message)
        self.lacks = lacks


class NotSynced(UsageError):
    """The cache was read before it held its first full state.

    Await ``wait_synced()`` first, or read through ``lister.unsynced`` to accept a partial view.
    """


class IndexFailed(UsageError):
    """The function of an index that was to be added raised; what it raised is the ``__cause__``.

    The cache and its other indexes are as if nobody had asked. ``index`` and ``key`` say of which
    index, and at which object.
    """

    def __init__(self, index: str, resource: object, key: object, error: Exception) -> None:
        super().__init__(
            f"the index {index!r} was not added: its function raised at {resource} {key}: "
            f"{type(error).__name__}: {error}"
        )
        self.index = index
        self.key = str(key)


class NotComparable(UsageError, ValueError):
    """A resourceVersion that is no decimal number, and so neither older nor newer than others.

    Conformant servers have none (KEP-5504); some aggregated ones do.
    """

    def __init__(self, version: str) -> None:
        super().__init__(
            f"the resourceVersion {version!r} is no decimal number, so that nobody knows whether "
            "it is older or newer than another one (KEP-5504)"
        )
        self.version = version


class NotRunning(UsageError):
    """The informer, stream or factory has ended, or was never started."""
