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
from aioinformer._cli.arguments import WatchCommandOptions
from aioinformer._cli.cluster_options import check_namespace, choose_namespace
from aioinformer._cli.terminal.messages import Messages
from aioinformer._cli.terminal.process import EXIT_USAGE, Terminal
from aioinformer._cli.watch.formats import OutputFormat, create_format
from aioinformer._cli.watch.kube_events import RelatedEvents
from aioinformer._cli.watch.server_tables import ListProgress
from aioinformer._cli.watch.table_source import TableSource
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.selectors.requirements import END_OF_TEXT
from aioinformer.errors import BadRequest, InvalidSelector, SyncTimeout

__all__ = ["run_watch"]

EVENTS_RESOURCE = find_built_in("events")
"""What ``--events`` shows."""
STATUS_DELAY = 1.5
"""Seconds of silence before it is said what is being waited for."""
REFRESH_INTERVAL = 0.25
"""Seconds between two looks at the informer's health; they count down to the next attempt."""


async def run_watch(options: WatchCommandOptions, terminal: Terminal) -> int:
    """Print until cancelled.

    Raises:
        InformerError: it can't be done, or the server could not be asked what it serves.
        OSError: nobody reads what is printed.
    """
    _check_selector("--selector", LabelSelector.parse, options.labels)
    _check_selector("--field-selector", FieldSelector.parse, options.fields)
    check_namespace(options.namespace, "--namespace")
    create_format(
        options.output, columns=lambda: (), namespaces=False, colour=False
    )  # raises early
    async with Client.connect(kubeconfig=options.kubeconfig, context=options.context) as client:
        namespace = choose_namespace(client, options.namespace, everywhere=options.everywhere)
        resource = await client.resource(options.resource)
        tables = TableSource(client)
        form = create_format(
            options.output,
            columns=lambda: tables.columns,
            namespaces=options.everywhere and resource.namespaced,
            colour=terminal.output.colour,
        )
        tables.whole_objects = form.whole_objects
        async with SharedInformerFactory(tables) as informers:
            informer = informers.informer(
                resource,
                namespace=namespace,
                labels=options.labels,
                fields=_field_selector(options),
            )
            if not await _wait_synced(informer, tables.progress, terminal.messages):
                return EXIT_USAGE
            async with (
                _open_related_events(client, informer, namespace, options) as notes,
                _show_outages(informer, terminal.messages),
            ):
                await _print_events(informer, form, notes, terminal)
    return 0


def _field_selector(options: WatchCommandOptions) -> str:
    """The field selector, which a name is part of."""
    named = str(FieldSelector.parse({"metadata.name": options.name})) if options.name else ""
    return ",".join(each for each in (named, options.fields) if each)


def _check_selector(option: str, parse: Callable[[str], object], text: str) -> None:
    """Complain of a selector before anything is asked of a server."""
    try:
        parse(text)
    except InvalidSelector as error:
        fault, *_, mark = str(error).splitlines()  # the other lines point into the text
        where = f", {END_OF_TEXT}" if mark.endswith(END_OF_TEXT) else ""
        raise InvalidSelector(f"{option} {text!r}: {fault}{where}") from error


# -- the first state ---------------------------------------------------------------------------


async def _wait_synced(
    informer: SharedInformer, progress: ListProgress, messages: Messages
) -> bool:
    """Wait until it is complete; on a terminal, say how far it is, or for what it waits.

    False if the server doesn't understand what is asked (a field that it can't select by). That
    won't get better; it was logged, and so is on stderr already.
    """
    for attempt in count(1):
        try:
            await informer.wait_synced(REFRESH_INTERVAL)
            break
        except SyncTimeout:
            health = informer.health
            if isinstance(health.error, BadRequest):
                return False
            if health.state == "listing" and progress.items:
                messages.show_status(f"{informer.name}: {_format_progress(progress)}")
            elif attempt * REFRESH_INTERVAL >= STATUS_DELAY:
                messages.show_status(f"waiting for {informer.name}: {_format_wait(health)}")
    messages.show_status("")
    return True


def _format_progress(progress: ListProgress) -> str:
    """How much has come, of how much if the server says."""
    if progress.total is None:
        return f"{progress.items:,} item{'s' if progress.items > 1 else ''} so far"
    share = progress.items / progress.total
    return f"{progress.items:,} of {progress.total:,} items ({share:.0%})"


def _format_wait(health: Health) -> str:
    """What fits into a line. Why it waits was said in one of its own."""
    if health.retry_in is not None:
        return f"next attempt in {health.retry_in:.1f} s"
    return f"{health.state} for {health.since:.0f} s"


# -- what follows ------------------------------------------------------------------------------


@asynccontextmanager
async def _show_outages(informer: SharedInformer, messages: Messages) -> AsyncGenerator[None]:
    """On a terminal, say for what it waits while the server is away, until it is back."""

    async def tell() -> NoReturn:
        while True:
            await asyncio.sleep(REFRESH_INTERVAL)
            health = informer.health
            away = health.retry_in is not None
            messages.show_status(
                f"waiting for {informer.name}: {_format_wait(health)}" if away else ""
            )

    telling = asyncio.create_task(tell()) if messages.is_terminal else None
    try:
        yield
    finally:
        if telling is not None:
            telling.cancel()
            await asyncio.wait((telling,))


@asynccontextmanager
async def _open_related_events(
    client: Client, informer: SharedInformer, namespace: str, options: WatchCommandOptions
) -> AsyncGenerator[tuple[SharedInformer, RelatedEvents] | None]:
    """The Kubernetes Events of what is watched, if they shall be shown."""
    resource = informer.resource
    if not options.events or resource.plural == EVENTS_RESOURCE.plural:
        yield None
        return
    selected = bool(options.name or options.labels or options.fields)
    notebook = RelatedEvents(resource, lambda key: not selected or key in informer.lister)
    place = namespace if resource.namespaced else "default"  # where those of nodes are
    async with SharedInformerFactory(client, watch_list=False) as informers:  # as the tables
        yield (
            informers.informer(EVENTS_RESOURCE, namespace=place, fields=notebook.selector),
            notebook,
        )


async def _print_events(
    informer: SharedInformer,
    output_format: OutputFormat,
    related: tuple[SharedInformer, RelatedEvents] | None,
    terminal: Terminal,
) -> None:
    output = terminal.output
    if opening := output_format.format_header(informer.lister, _now()):
        await output.write(opening)
    streams = [informer.events(), *([related[0].events()] if related else [])]
    async with merge(*streams) as changes:
        async for source, event in changes:
            terminal.messages.show_status("")  # it would stand in the same line
            if source is informer:
                await output.write(output_format.format_change(event, _now()))
            elif related is not None and related[1].includes(event):
                await output.write(output_format.format_kube_event(event))


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
