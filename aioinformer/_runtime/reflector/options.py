"""The options of a reflector, gathered in one frozen value, and documented on its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypedDict, cast

from msgspec import Struct
from msgspec.structs import replace

from aioinformer._core.arguments import check_bool, check_names
from aioinformer._core.codec.line_splitter import LINE_CAP
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.liveness import LivenessPolicy
from aioinformer._core.listwatch.polling import POLL_INTERVAL
from aioinformer._core.listwatch.state_machine import WATCH_SECONDS

MIN_POLL_INTERVAL = 5.0
"""The least ``poll_interval`` in seconds. Each poll is a list of the whole state."""


MIN_WATCH_SECONDS = 60
"""The least ``watch_seconds``. A server sends its first bookmark after a minute, and each end of a
watch costs a request."""

OWN_PARAMETERS: Mapping[str, str] = {
    "allowWatchBookmarks": "",
    "continue": "",
    "fieldSelector": "pass fields=",
    "labelSelector": "pass labels=",
    "limit": "pass page_size=",
    "resourceVersion": "",
    "resourceVersionMatch": "",
    "sendInitialEvents": "pass watch_list=",
    "shardSelector": "pass shard=",
    "timeoutSeconds": "pass watch_seconds=",
    "watch": "",
}
"""The query parameters that a reflector sets itself, and the options for them."""


class ReflectorKeywords(TypedDict, total=False):
    """The options as keywords; ``None`` and a missing keyword both mean the default."""

    backoff: BackoffPolicy | None
    liveness: LivenessPolicy | None
    watch_list: bool
    page_size: int
    line_cap: int
    validate: bool
    poll_interval: float
    watch_seconds: tuple[int, int]
    list_options: Mapping[str, str]


class ReflectorOptions(Struct, frozen=True, kw_only=True):
    backoff: BackoffPolicy = BackoffPolicy()
    """The waits after failed requests."""
    liveness: LivenessPolicy = LivenessPolicy()
    """The idle timeout of a watch, and the time limits of an initial list."""
    watch_list: bool = True
    """True if the state is read by a WatchList where the source and the server support it, else by
    lists only."""
    page_size: int = 0
    """Items per page of a list. 0 means client-go's rule: 500, and no limit for a list at a known
    resourceVersion, because a limit would bypass the server's watch cache."""
    line_cap: int = LINE_CAP
    """The longest event of a watch, and the longest item of a list, in bytes. A longer one fails
    the watch or list. An object is decoded in one step, which holds the event loop for about 1.4 ms
    a megabyte: with 7,000,000, for 10 ms. A server with default limits sends 9 MiB at most."""
    validate: bool = False
    """True to check that each event of a watch is JSON to its end, which costs 2 µs for a pod. By
    default, an event is read up to its managedFields where the watch has shown that nothing but the
    body follows them, as for all built-in resources. An object whose body is broken raises
    ``ObjectDecodeError`` where it is opened, and ``SharedInformer.verify`` finds it. Lists and
    informers with ``model=`` or ``transform=`` are always checked."""
    poll_interval: float = POLL_INTERVAL
    """Seconds, five at least, between two lists that refresh the cache where the server serves
    lists and refuses watches (403, 404 or 405). Each interval is up to a tenth shorter or longer.
    The watch is tried again now and then. Five seconds while ``wait_for``, or the next run of a key
    that wrote, waits for the cache."""
    watch_seconds: tuple[int, int] = WATCH_SECONDS
    """The least and the greatest requested duration of a watch in seconds, 60 at least; a random
    one between them, so that watches that began together don't end together (client-go). Some
    proxies cut connections of a certain age: a shorter duration ends the watches before."""
    list_options: Mapping[str, str] = {}
    """Further query parameters of each list and watch, for servers and proxies with options of
    their own. Parameters that the reflector sets itself are rejected."""

    def __post_init__(self) -> None:
        """Reject numbers that no server accepts.

        Raises:
            TypeError: ``page_size`` or ``line_cap`` is no int, or ``validate`` no bool.
            ValueError: ``page_size`` is negative, ``line_cap`` is less than 1, ``poll_interval``
                less than 5, ``watch_seconds`` less than 60 or in the wrong order, or
                ``list_options`` contains a parameter of the reflector's own.
        """
        _check_watch_seconds(self.watch_seconds)
        _check_list_options(self.list_options)
        _check_number("page_size", self.page_size, 0)
        _check_number("line_cap", self.line_cap, 1)
        check_bool("validate", self.validate)
        if not MIN_POLL_INTERVAL <= self.poll_interval < float("inf"):  # so that a NaN fails, too
            raise ValueError(
                f"poll_interval must be at least {MIN_POLL_INTERVAL:g} seconds, "
                f"not {self.poll_interval:g}"
            )

    def merge(self, keywords: Mapping[str, Any]) -> Self:
        """Return a copy in which ``keywords`` that aren't ``None`` replace the fields of these
        names.

        Raises:
            TypeError: a keyword isn't the name of a field.
        """
        check_names(keywords, self.__struct_fields__)
        given = {name: value for name, value in keywords.items() if value is not None}
        return replace(self, **given) if given else self


def _check_watch_seconds(limits: object) -> None:
    if not isinstance(limits, tuple):
        raise TypeError(f"watch_seconds must be a pair such as (300, 600), not {limits!r}")
    pair = cast("tuple[object, ...]", limits)
    if len(pair) != 2:
        raise ValueError(f"watch_seconds must be a pair such as (300, 600), not {pair!r}")
    least, greatest = pair
    _check_number("the least of watch_seconds", least, MIN_WATCH_SECONDS)
    _check_number("the greatest of watch_seconds", greatest, cast("int", least))


def _check_list_options(options: object) -> None:
    if not isinstance(options, Mapping):
        raise TypeError(f"list_options must be a mapping of query parameters, not {options!r}")
    for name, value in cast("Mapping[object, object]", options).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"list_options must contain texts, not {name!r}: {value!r}")
        if name in OWN_PARAMETERS:
            way = OWN_PARAMETERS[name] or "the reflector chooses it"
            raise ValueError(f"list_options can't contain {name}: {way}")


def _check_number(name: str, number: object, least: int) -> None:
    # ``object``, because a program without a type checker may pass a text from its configuration.
    if not isinstance(number, int):
        raise TypeError(f"{name} must be a whole number, not {number!r}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
