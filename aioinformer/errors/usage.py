"""Errors of the calling program: wrong arguments, wrong order of calls, wrong configuration.

``InformerError`` is defined here because each module of errors imports it.
"""

from __future__ import annotations

from aioinformer.errors.texts import printable

MAX_SHOWN = 40
"""Characters of an invalid resourceVersion in a message."""


class InformerError(Exception):
    """The base of all exceptions that aioinformer raises on purpose.

    Its texts are on one line, since an object's name or a server's words may be part of them.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(self._show(each) if isinstance(each, str) else each for each in args))

    @staticmethod
    def _show(text: str) -> str:
        return printable(text)


class UsageError(InformerError):
    """The calling program requested something impossible. Repeating the call does not help."""


class ConfigurationError(UsageError):
    """No usable kubeconfig, context or in-cluster files. The message names the searched places."""


class _MarkedText(UsageError, ValueError):
    """A text of the program's own that doesn't parse. A line of the message marks the place."""

    @staticmethod
    def _show(text: str) -> str:
        return "".join(each if each.isprintable() or each == "\n" else " " for each in text)


class InvalidSelector(_MarkedText):
    """A label or field selector that doesn't parse. The message marks the place."""


class InvalidPath(_MarkedText):
    """A path into an object that doesn't parse. The message marks the place."""


class PathMismatch(UsageError, TypeError):
    """A strict path doesn't fit the object, such as a path to a key of a string."""


class UnknownResource(UsageError, LookupError):
    """No resource of that name, in the built-in table or on the server."""


class AmbiguousResource(UnknownResource):
    """Several groups have a resource of that name. ``candidates`` are their unambiguous names."""

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class UnwatchableResource(UsageError):
    """The resource can't be listed and watched, such as reviews; it lacks the verbs ``lacks``."""

    def __init__(self, message: str, *, lacks: tuple[str, ...]) -> None:
        super().__init__(message)
        self.lacks = lacks


class NotSynced(UsageError):
    """The cache was read before its initial list was complete.

    Await ``wait_synced()`` first, or read through ``lister.unsynced`` to accept a partial state.
    """


class IndexFailed(UsageError):
    """The function of an index raised an exception, which is the ``__cause__``.

    A new index doesn't exist then; the cache and its other indexes are unchanged. With an existing
    index, the object is rejected: the cached version stays, and the object is listed in
    ``health.rejected``. ``index`` is the name of the index, ``key`` the object at which the
    function raised.
    """

    def __init__(
        self,
        index: str,
        resource: object,
        key: object,
        error: Exception,
        *,
        new: bool = False,
        uid: str = "",
    ) -> None:
        subject = f"the function of the index {index!r}"
        if new:
            subject = f"the index {index!r} was not added: its function"
        super().__init__(f"{subject} raised at {resource} {key}: {type(error).__name__}: {error}")
        self.index = index
        self.key = str(key)
        self.uid = uid


class NotComparable(UsageError, ValueError):
    """A resourceVersion is not a decimal number, so it can't be compared with others.

    Conformant servers use only decimal numbers (KEP-5504); some aggregated servers don't.
    """

    def __init__(self, version: str) -> None:
        shown = version if len(version) <= MAX_SHOWN else f"{version[:MAX_SHOWN]}..."
        super().__init__(
            f"the resourceVersion {shown!r} is not a decimal number, so it can't be compared "
            "with another one (KEP-5504)"
        )
        self.version = version


class NotRunning(UsageError):
    """The informer, stream or factory has ended, or was never started."""
