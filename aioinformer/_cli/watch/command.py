"""``aioinformer watch``: an informer of one resource, printed.

The initial state comes first, then each change as it comes; every line is out at once. Failures
are the library's to retry: they are told on stderr, and the watch goes on. What can't get better
(no cluster, an unknown resource, a selector that doesn't parse) ends it.

What is read are the server's tables, ``reading``'s work; how they look is decided by ``formats``.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import NoReturn

from aioinformer import (
    Client,
    FieldSelector,
    Health,
    LabelSelector,
    SharedInformer,
    SharedInformerFactory,
    merge,
)
from aioinformer._cli.arguments import WatchOptions
from aioinformer._cli.cluster_options import namespace_of, scope_of
from aioinformer._cli.terminal.messages import Notices
from aioinformer._cli.terminal.process import UNUSABLE, Terminal
from aioinformer._cli.watch.formats import Form, form_of
from aioinformer._cli.watch.kube_events import Notebook
from aioinformer._cli.watch.server_tables import Progress
from aioinformer._cli.watch.table_source import Tables
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.selectors.requirements import AT_THE_END
from aioinformer.errors import BadRequest, InvalidSelector, SyncTimeout

__all__ = ["run_watch"]

EVENTS = find_built_in("events")
"""What ``--events`` shows."""
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
    namespace_of(options.namespace, "--namespace")
    form_of(options.output, columns=lambda: (), namespaces=False, colour=False)  # raises early
    async with Client.connect(kubeconfig=options.kubeconfig, context=options.context) as client:
        namespace = scope_of(client, options.namespace, everywhere=options.everywhere)
        resource = await client.resource(options.resource)
        tables = Tables(client)
        form = form_of(
            options.output,
            columns=lambda: tables.columns,
            namespaces=options.everywhere and resource.namespaced,
            colour=terminal.output.colour,
        )
        tables.objects = form.objects
        async with SharedInformerFactory(tables) as informers:
            informer = informers.informer(
                resource, namespace=namespace, labels=options.labels, fields=_fields(options)
            )
            if not await _synced(informer, tables.progress, terminal.notices):
                return UNUSABLE
            async with (
                _notes(client, informer, namespace, options) as notes,
                _outages(informer, terminal.notices),
            ):
                await _print(informer, form, notes, terminal)
    return 0


def _fields(options: WatchOptions) -> str:
    """The field selector, which a name is part of."""
    named = str(FieldSelector.parse({"metadata.name": options.name})) if options.name else ""
    return ",".join(each for each in (named, options.fields) if each)


def _check(option: str, parse: Callable[[str], object], text: str) -> None:
    """Complain of a selector before anything is asked of a server."""
    try:
        parse(text)
    except InvalidSelector as error:
        fault, *_, mark = str(error).splitlines()  # the other lines point into the text
        where = f", {AT_THE_END}" if mark.endswith(AT_THE_END) else ""
        raise InvalidSelector(f"{option} {text!r}: {fault}{where}") from error


# -- the first state ---------------------------------------------------------------------------


async def _synced(informer: SharedInformer, progress: Progress, notices: Notices) -> bool:
    """Wait until it is complete; on a terminal, say how far it is, or for what it waits.

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
            if health.state == "listing" and progress.items:
                notices.status(f"{informer.name}: {_so_far(progress)}")
            elif attempt * REFRESH >= PATIENCE:
                notices.status(f"waiting for {informer.name}: {_short(health)}")
    notices.status("")
    return True


def _so_far(progress: Progress) -> str:
    """How much has come, of how much if the server says."""
    if progress.total is None:
        return f"{progress.items:,} item{'s' if progress.items > 1 else ''} so far"
    share = progress.items / progress.total
    return f"{progress.items:,} of {progress.total:,} items ({share:.0%})"


def _short(health: Health) -> str:
    """What fits into a line. Why it waits was said in one of its own."""
    if health.retry_in is not None:
        return f"next attempt in {health.retry_in:.1f} s"
    return f"{health.state} for {health.since:.0f} s"


# -- what follows ------------------------------------------------------------------------------


@asynccontextmanager
async def _outages(informer: SharedInformer, notices: Notices) -> AsyncGenerator[None]:
    """On a terminal, say for what it waits while the server is away, until it is back."""

    async def tell() -> NoReturn:
        while True:
            await asyncio.sleep(REFRESH)
            health = informer.health
            away = health.retry_in is not None
            notices.status(f"waiting for {informer.name}: {_short(health)}" if away else "")

    telling = asyncio.create_task(tell()) if notices.terminal else None
    try:
        yield
    finally:
        if telling is not None:
            telling.cancel()
            await asyncio.wait((telling,))


@asynccontextmanager
async def _notes(
    client: Client, informer: SharedInformer, namespace: str, options: WatchOptions
) -> AsyncGenerator[tuple[SharedInformer, Notebook] | None]:
    """The Kubernetes Events of what is watched, if they shall be shown."""
    resource = informer.resource
    if not options.events or resource.plural == EVENTS.plural:
        yield None
        return
    selected = bool(options.name or options.labels or options.fields)
    notebook = Notebook(resource, lambda key: not selected or key in informer.lister)
    place = namespace if resource.namespaced else "default"  # where those of nodes are
    async with SharedInformerFactory(client, watch_list=False) as informers:  # as the tables
        yield informers.informer(EVENTS, namespace=place, fields=notebook.selector), notebook


async def _print(
    informer: SharedInformer,
    form: Form,
    notes: tuple[SharedInformer, Notebook] | None,
    terminal: Terminal,
) -> None:
    output = terminal.output
    if opening := form.opening(informer.lister, _now()):
        await output.write(opening)
    streams = [informer.events(), *([notes[0].events()] if notes else [])]
    async with merge(*streams) as changes:
        async for source, event in changes:
            terminal.notices.status("")  # it would stand in the same line
            if source is informer:
                await output.write(form.change(event, _now()))
            elif notes is not None and notes[1].takes(event):
                await output.write(form.note(event))


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
