"""``aioinformer watch``: an informer of one resource, printed.

The initial state comes first, then each change as it comes; every line is out at once. Failures
are the library's to retry: they are told on stderr, and the watch goes on. What can't get better
(no cluster, an unknown resource, a selector that doesn't parse) ends it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from itertools import count

from aioinformer import (
    ALL_NAMESPACES,
    Added,
    Client,
    FieldSelector,
    Health,
    LabelSelector,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer._cli.arguments import WatchOptions
from aioinformer._cli.notices import Notices
from aioinformer._cli.process import UNUSABLE, Terminal
from aioinformer._cli.table import Table, json_line
from aioinformer._core.resources import find_built_in
from aioinformer._core.selectors.faults import AT_THE_END
from aioinformer.errors import BadRequest, InvalidSelector, SyncTimeout, UsageError

__all__ = ["run_watch"]

PODS = find_built_in("pods")
"""Something that has namespaces, whose names are all under the same rule."""
DEFAULT = "default"
"""The namespace if nobody names one."""
PATIENCE = 1.5
"""Seconds of silence before it is said what is being waited for."""
REFRESH = 0.25
"""Seconds between two looks at the informer's health; they count down to the next attempt."""


async def run_watch(options: WatchOptions, terminal: Terminal) -> int:
    """Print until cancelled.

    Raises:
        InformerError: it can't be done, or the server could not be asked what it serves.
        OSError: nobody reads what is printed.
    """
    _check("--selector", LabelSelector.parse, options.labels)
    _check("--field-selector", FieldSelector.parse, options.fields)
    _namespace(options.namespace, "--namespace")
    async with Client.connect(kubeconfig=options.kubeconfig, context=options.context) as client:
        namespace = _scope(options, client)
        resource = await client.resource(options.resource)
        async with SharedInformerFactory(client) as informers:
            informer = informers.informer(
                resource,
                namespace=namespace,
                labels=options.labels,
                fields=options.fields,
            )
            if not await _synced(informer, terminal.notices):
                return UNUSABLE
            await _print(informer, options, terminal)
    return 0


def _scope(options: WatchOptions, client: Client) -> str:
    """The namespace to watch, as kubectl chooses it.

    Raises:
        UsageError: it can't be that of one.
    """
    if options.everywhere:
        return ALL_NAMESPACES
    return (
        _namespace(options.namespace, "--namespace")
        or _namespace(client.namespace, "the namespace of the context")
        or DEFAULT
    )


def _namespace(name: str, whose: str) -> str:
    try:
        PODS.path(name)
    except ValueError as error:
        raise UsageError(f"{whose}: {error}") from error
    return name


def _check(option: str, parse: Callable[[str], object], text: str) -> None:
    """Complain of a selector before anything is asked of a server."""
    try:
        parse(text)
    except InvalidSelector as error:
        fault, *_, mark = str(error).splitlines()  # the other lines point into the text
        where = f", {AT_THE_END}" if mark.endswith(AT_THE_END) else ""
        raise InvalidSelector(f"{option} {text!r}: {fault}{where}") from error


async def _synced(informer: SharedInformer, notices: Notices) -> bool:
    """Wait for the first full state; on a terminal, say for what after a while.

    False if the server doesn't understand what is asked (a field that it can't select by). That
    won't get better; it was logged, and so is on stderr already.
    """
    for attempt in count(1):
        try:
            await informer.wait_synced(REFRESH)
            break
        except SyncTimeout:
            health = informer.health
            if isinstance(health.error, BadRequest):
                return False
            if attempt * REFRESH >= PATIENCE:
                notices.status(f"waiting for {informer.name}: {_short(health)}")
    notices.status("")
    return True


def _short(health: Health) -> str:
    """What fits into a line. Why it waits was said in one of its own."""
    if health.retry_in is not None:
        return f"next attempt in {health.retry_in:.1f} s"
    return f"{health.state} for {health.since:.0f} s"


async def _print(informer: SharedInformer, options: WatchOptions, terminal: Terminal) -> None:
    several = options.everywhere and informer.resource.namespaced
    table = Table(namespaces=several)
    as_json = options.output == "json"
    if not as_json:
        table.fit(map(Added, informer.lister), _now())
        await terminal.output.write(table.header())
    async with informer.events() as events:
        async for event in events:
            await terminal.output.write(json_line(event) if as_json else table.row(event, _now()))


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
