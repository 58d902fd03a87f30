"""``aioinformer watch``: print the objects of a resource, then each change.

The informer of the server's tables retries failed requests; the command shows the errors on stderr,
and that it goes on. An error that a retry can't fix (no cluster, an unknown resource, a selector
that doesn't parse) ends the command.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from aioinformer import (
    Added,
    Client,
    Event,
    FieldSelector,
    KubeObject,
    LabelSelector,
    Resource,
    SharedInformer,
    SharedInformerFactory,
    merge,
)
from aioinformer._cli.cluster_options import check_namespace, choose_namespace, connect
from aioinformer._cli.options import WatchCommandOptions
from aioinformer._cli.outages import REFRESH_INTERVAL, describe_retry, format_wait, show_outages
from aioinformer._cli.terminal.command_process import EXIT_USAGE, Terminal
from aioinformer._cli.watch.first_objects import FirstObjects
from aioinformer._cli.watch.formats import OutputFormat, create_format
from aioinformer._cli.watch.kube_events import RelatedEvents
from aioinformer._cli.watch.server_tables import ListProgress
from aioinformer._cli.watch.table_source import TableSource
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.selectors.requirements import END_OF_TEXT
from aioinformer.errors import BadRequest, InvalidSelector, ObjectDecodeError, SyncTimeout

EVENTS_RESOURCE = find_built_in("events")
STATUS_DELAY = 1.5
"""Seconds without a line before the status line shows the reason of the wait."""


async def run_watch(options: WatchCommandOptions, terminal: Terminal) -> int:
    """Print objects and changes until the task is cancelled."""
    _check_selector("--selector", LabelSelector.parse, options.labels)
    _check_selector("--field-selector", FieldSelector.parse, options.fields)
    check_namespace(options.namespace, "--namespace")
    # Reject a wrong --output before any request is sent.
    create_format(options.output, columns=lambda: (), namespaces=False, colour=False)
    async with connect(options) as client:
        namespace = choose_namespace(client, options.namespace, everywhere=options.everywhere)
        resource = await client.resource(options.resource)
        tables = TableSource(client)
        output_format = create_format(
            options.output,
            columns=lambda: tables.columns,
            namespaces=options.everywhere and resource.namespaced,
            colour=terminal.output.colour,
        )
        tables.whole_objects = output_format.whole_objects
        async with SharedInformerFactory(tables) as informers:
            first = FirstObjects()
            tables.on_first_page = first.collect
            informer = informers.informer(
                resource,
                namespace=namespace,
                labels=options.labels,
                fields=_field_selector(options),
            )
            rows = _RowWriter(output_format, terminal)
            async with show_outages(
                informer,
                terminal.messages,
                until="until interrupted",
                describe=_status_line(tables.progress),
                is_final=_is_rejected,
            ):
                if not await _wait_synced(informer, first, rows):
                    return EXIT_USAGE
                if not len(informer.lister):
                    terminal.messages.show(_describe_nothing(resource, namespace, options))
                async with _open_related_events(client, informer, namespace, options) as related:
                    await _print_events(informer, related, first, rows)
    return 0


def _field_selector(options: WatchCommandOptions) -> str:
    by_name = str(FieldSelector.parse({"metadata.name": options.name})) if options.name else ""
    return ",".join(each for each in (by_name, options.fields) if each)


def _describe_nothing(
    resource: Resource, namespace: str | None, options: WatchCommandOptions
) -> str:
    """Describe an empty initial list by what was asked for: a misspelt name may be the cause."""
    namespace = namespace if resource.namespaced else None
    parts = [
        f"no {resource.plural}",
        f"called {options.name}" if options.name else "",
        f"in the namespace {namespace}" if namespace else "",
        f"with the labels {options.labels}" if options.labels else "",
        f"with the fields {options.fields}" if options.fields else "",
    ]
    hint = " (-A watches all namespaces)" if namespace else ""
    return f"{' '.join(filter(None, parts))}; waiting for changes{hint}"


def _check_selector(option: str, parse: Callable[[str], object], text: str) -> None:
    """Reject a wrong selector before any request is sent."""
    try:
        parse(text)
    except InvalidSelector as error:
        fault, *_, mark = str(error).splitlines()  # the other lines point into the text
        where = f", {END_OF_TEXT}" if mark.endswith(END_OF_TEXT) else ""
        raise InvalidSelector(f"{option} {text!r}: {fault}{where}") from error


# -- the initial list --------------------------------------------------------------------------


async def _wait_synced(informer: SharedInformer, first: FirstObjects, rows: _RowWriter) -> bool:
    """Print first objects until the initial list is complete; return False if it is rejected."""
    while True:
        try:
            await informer.wait_synced(REFRESH_INTERVAL)
        except SyncTimeout:
            await rows.write_first(first.take())
            if _is_rejected(informer):
                return False
        else:
            rows.terminal.messages.show_status("")
            return True


def _is_rejected(informer: SharedInformer) -> bool:
    """Return True if the server rejects the initial list as bad, which no retry can fix.

    The server can't select by a field, for example. The log has shown the error on stderr.
    """
    return not informer.synced and isinstance(informer.health.error, BadRequest)


def _status_line(progress: ListProgress) -> Callable[[SharedInformer], str]:
    """Return the function that describes an informer's initial list, and its later retries."""
    clock = asyncio.get_running_loop().time
    began = clock()

    def describe(informer: SharedInformer) -> str:
        health = informer.health
        if informer.synced:
            return describe_retry(informer)
        if health.state == "listing" and progress.items:
            return f"{informer.name}: {_format_progress(progress)}"
        waits = clock() - began >= STATUS_DELAY
        return f"waiting for {informer.name}: {format_wait(health)}" if waits else ""

    return describe


def _format_progress(progress: ListProgress) -> str:
    if progress.total is None:
        return f"{progress.items:,} item{'s' if progress.items > 1 else ''} so far"
    share = progress.items / progress.total
    return f"{progress.items:,} of {progress.total:,} items ({share:.0%})"


# -- changes -----------------------------------------------------------------------------------


@asynccontextmanager
async def _open_related_events(
    client: Client, informer: SharedInformer, namespace: str, options: WatchCommandOptions
) -> AsyncGenerator[tuple[SharedInformer, RelatedEvents] | None]:
    resource = informer.resource
    if not options.events or resource.plural == EVENTS_RESOURCE.plural:
        yield None
        return
    selected = bool(options.name or options.labels or options.fields)
    related = RelatedEvents(resource, lambda key: not selected or key in informer.lister)
    # Events about cluster-scoped objects are in the namespace "default".
    scope = namespace if resource.namespaced else "default"
    async with SharedInformerFactory(client, watch_list=False) as informers:  # like the tables
        yield (
            informers.informer(EVENTS_RESOURCE, namespace=scope, fields=related.selector),
            related,
        )


class _RowWriter:
    def __init__(self, output_format: OutputFormat, terminal: Terminal) -> None:
        self.output_format = output_format
        self.terminal = terminal
        self._has_header = False

    async def write_header(self, objects: Iterable[KubeObject]) -> None:
        """Write the headings before the first change, wide enough for the first of ``objects``."""
        if not self._has_header:
            self._has_header = True
            if header := self.output_format.format_header(objects, _now()):
                await self._write(header)

    async def write_first(self, objects: Sequence[KubeObject]) -> None:
        """Write objects of an initial list that is not complete yet."""
        if objects:
            await self.write_header(objects)
            for obj in objects:
                await self.write_change(Added(obj, initial=True))

    async def write_change(self, event: Event) -> None:
        await self._write_event(event.obj, lambda: self.output_format.format_change(event, _now()))

    async def write_kube_event(self, event: Event) -> None:
        await self._write_event(event.obj, lambda: self.output_format.format_kube_event(event))

    async def _write_event(self, obj: KubeObject, text: Callable[[], str | bytes]) -> None:
        """Write one event; on stderr, name an object that can't be printed, and go on."""
        try:
            await self._write(text())
        except ObjectDecodeError as error:
            self.terminal.messages.show(str(error))
        except RecursionError:  # YAML ends at a third of the depth at which decoding does
            self.terminal.messages.show(
                f"{obj.resource} {obj.key}: it is nested too deeply to be printed"
            )

    async def _write(self, text: str | bytes) -> None:
        self.terminal.messages.show_status("")  # else the row would follow in the same line
        await self.terminal.output.write(text)


async def _print_events(
    informer: SharedInformer,
    related: tuple[SharedInformer, RelatedEvents] | None,
    first: FirstObjects,
    rows: _RowWriter,
) -> None:
    await rows.write_header(informer.lister)
    for deletion in first.deletions(informer.lister.__contains__):
        await rows.write_change(deletion)
    streams = [informer.events(), *([related[0].events()] if related else [])]
    async with merge(*streams) as events:
        async for source, event in events:
            # Also later: a stream delivers nothing of an object that is deleted before its replay.
            if not (isinstance(event, Added) and event.initial):
                for deletion in first.deletions(informer.lister.__contains__):
                    await rows.write_change(deletion)
            if source is informer:
                if (change := first.change_since(event)) is not None:
                    await rows.write_change(change)
            elif related is not None and related[1].includes(event):
                await rows.write_kube_event(event)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
