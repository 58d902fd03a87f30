"""``aioinformer health``: a quick look at a cluster, as a table or as JSON.

``checks`` asks; here is what is looked at and how it is told: a line for each resource, and for
each failure one that says what to do about it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from aioinformer import Client
from aioinformer._cli.arguments import HealthCommandOptions
from aioinformer._cli.cluster_options import (
    check_namespace,
    choose_namespace,
    credential_kind,
    kubeconfig_paths,
)
from aioinformer._cli.health.checks import (
    ResourceReport,
    ServerReport,
    check_resource,
    check_server,
)
from aioinformer._cli.terminal.process import Terminal
from aioinformer._cli.terminal.style import (
    Line,
    Style,
    StyledText,
    compact_bytes,
    printable,
    render,
)
from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer.errors import ConfigurationError, FetchError

__all__ = ["DEFAULT_RESOURCES", "format_report", "run_health"]

DEFAULT_RESOURCES = ("pods", "services", "deployments.apps", "namespaces", "nodes")
"""What is looked at if nobody says what: namespaced and not, from two groups, and no secrets."""

EXIT_FAILED = 1
UNLIMITED_WIDTH = 1_000_000
COLUMN_GAP = "   "
LABEL_WIDTH = 13
"""Columns of the names of facts."""


async def run_health(options: HealthCommandOptions, terminal: Terminal) -> int:
    """Look, and print what was found; 0 if everything works.

    Raises:
        UsageError: no cluster is configured, or the namespace can't be one.
        OSError: nobody reads what is printed.
    """
    check_namespace(options.namespace, "--namespace")
    findings: list[ResourceReport] = []
    async with Client.connect(kubeconfig=options.kubeconfig, context=options.context) as client:
        namespace = choose_namespace(client, options.namespace, everywhere=options.everywhere)
        report = ServerReport(
            url=client.server,
            credentials=await run_in_thread(partial(_describe_credentials, options)),
        )
        try:
            terminal.messages.show_status(f"asking {client.server}")
            await check_server(client, report, timeout=options.timeout)
        except FetchError as error:
            report.error = str(error)
        else:
            for name in options.resources or DEFAULT_RESOURCES:
                terminal.messages.show_status(f"looking at {name}")
                found = await check_resource(client, name, namespace, timeout=options.timeout)
                findings.append(found)
    terminal.messages.show_status("")
    ok = not report.error and all(finding.ok for finding in findings)
    if options.output == "json":
        await terminal.output.write(_encode_report(report, findings, ok=ok))
    else:
        for line in format_report(report, findings):
            text = render(line, UNLIMITED_WIDTH, colour=terminal.output.colour).rstrip()
            await terminal.output.write(f"{text}\n")
    return 0 if ok else EXIT_FAILED


def _describe_credentials(options: HealthCommandOptions) -> str:
    """How one shows who one is. Reads files, and has read them before: what they say is known."""
    from aioinformer._client.kubeconfig.files import KubeconfigFiles

    paths = kubeconfig_paths(options.kubeconfig, os.environ)
    if not paths:
        return "token of the pod's service account"
    try:
        files = KubeconfigFiles.read(paths)
        name = files.choose_context(options.context)
        return f"{credential_kind(files.read_context(name))} (context {name}, {_join_paths(paths)})"
    except ConfigurationError:
        return "unknown: the kubeconfig has just changed"


def _join_paths(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


# -- as JSON -----------------------------------------------------------------------------------


def _encode_report(
    report: ServerReport, resource_reports: Sequence[ResourceReport], *, ok: bool
) -> bytes:
    """One document in one line. Times are in seconds, sizes in bytes."""
    resources: list[Any] = [
        {**msgspec.to_builtins(finding), "ok": finding.ok} for finding in resource_reports
    ]
    whole = {"ok": ok, "server": msgspec.to_builtins(report), "resources": resources}
    return msgspec.json.encode(whole) + b"\n"


# -- for people --------------------------------------------------------------------------------

_HEADINGS = (
    "RESOURCE",
    "SCOPE",
    "LIST",
    "WATCH",
    "STRATEGY",
    "BOOKMARKS",
    "OBJECTS",
    "SIZE",
    "SYNC",
)


def format_report(report: ServerReport, resource_reports: Sequence[ResourceReport]) -> list[Line]:
    """What is printed, line by line."""
    lines = [
        _format_fact("server", " ".join((report.url, report.version))),
        _format_fact("credentials", report.credentials),
    ]
    if report.latency is not None and report.slowest is not None and report.first is not None:
        times = f"median {_format_milliseconds(report.latency)}, slowest {_format_milliseconds(report.slowest)}"
        lines.append(
            _format_fact("latency", f"{times}, first {_format_milliseconds(report.first)}")
        )
    if resource_reports:
        lines += [(), *_format_table(resource_reports)]
    said = [
        (finding.resource, text)
        for finding in resource_reports
        if (text := finding.error or finding.note)
    ]
    if report.error:
        said.append(("server", report.error))
    if said:
        lines.append(())
    for what, text in said:
        lines.append((StyledText(f"{printable(what)}: ", "bold"), StyledText(printable(text))))
    return lines


def _format_fact(name: str, value: str) -> Line:
    return (StyledText(f"{name:<{LABEL_WIDTH}}", "dim"), StyledText(printable(value)))


def _format_table(resource_reports: Sequence[ResourceReport]) -> list[Line]:
    rows = [
        tuple(StyledText(heading, "bold") for heading in _HEADINGS),
        *map(_format_row, resource_reports),
    ]
    widths = [max(len(row[at].text) for row in rows) for at in range(len(_HEADINGS))]
    return [_pad_row(row, widths) for row in rows]


def _pad_row(row: Line, widths: Sequence[int]) -> Line:
    padded: list[StyledText] = []
    for span, width in zip(row, widths, strict=True):
        padded += [span, StyledText(" " * (width - len(span.text)) + COLUMN_GAP)]
    return tuple(padded[:-1])


def _format_row(report: ResourceReport) -> Line:
    return (
        StyledText(printable(report.resource)),
        StyledText(report.scope or "-"),
        _format_answer(report.lists),
        _format_answer(report.watches),
        StyledText(report.strategy or "-"),
        _format_answer(report.bookmarks, bad="yellow"),
        StyledText("-" if report.objects is None else f"{report.objects:,}"),
        StyledText("-" if report.size is None else compact_bytes(report.size)),
        StyledText("-" if report.synced is None else _format_duration(report.synced)),
    )


def _format_answer(value: bool | None, *, bad: Style = "red") -> StyledText:
    if value is None:
        return StyledText("-", "dim")
    return StyledText("yes", "green") if value else StyledText("no", bad)


def _format_duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _format_milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
