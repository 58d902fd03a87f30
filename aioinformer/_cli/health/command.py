"""``aioinformer health``: the default resources to check, and the report as a table or as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from aioinformer._cli.cluster_options import (
    check_namespace,
    choose_namespace,
    connect,
    credential_kind,
    kubeconfig_paths,
)
from aioinformer._cli.health.checks import (
    ResourceReport,
    ServerReport,
    check_resource,
    check_server,
)
from aioinformer._cli.options import HealthCommandOptions
from aioinformer._cli.terminal.command_process import EXIT_FAILED, Terminal
from aioinformer._cli.terminal.style import (
    Line,
    Style,
    StyledText,
    align_columns,
    compact_bytes,
    printable,
    render,
)
from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer.errors import ConfigurationError, FetchError

DEFAULT_RESOURCES = ("pods", "services", "deployments.apps", "namespaces", "nodes")
"""Namespaced and cluster-scoped ones, of two groups, no Secrets."""

POD_CREDENTIALS = "token of the pod's service account"

LABEL_WIDTH = 13
"""The width of the names of facts, in columns."""


async def run_health(options: HealthCommandOptions, terminal: Terminal) -> int:
    """Check a cluster, print the report, and return 0 if every check has passed."""
    check_namespace(options.namespace, "--namespace")
    resource_reports: list[ResourceReport] = []
    async with connect(options) as client:
        namespace = choose_namespace(client, options.namespace, everywhere=options.everywhere)
        report = ServerReport(
            url=client.server,
            credentials=await run_in_thread(partial(_describe_credentials, options)),
        )
        try:
            terminal.messages.show_status(f"checking {client.server}")
            await check_server(client, report, timeout=options.timeout)
        except FetchError as error:
            report.error = str(error)
        else:
            for name in options.resources or DEFAULT_RESOURCES:
                terminal.messages.show_status(f"checking {name}")
                resource_reports.append(
                    await check_resource(client, name, namespace, timeout=options.timeout)
                )
    terminal.messages.show_status("")
    ok = not report.error and all(each.ok for each in resource_reports)
    if options.output == "json":
        await terminal.output.write(_encode_report(report, resource_reports, ok=ok))
    else:
        for line in format_report(report, resource_reports):
            text = render(line, colour=terminal.output.colour).rstrip()
            await terminal.output.write(f"{text}\n")
    return 0 if ok else EXIT_FAILED


def _describe_credentials(options: HealthCommandOptions) -> str:
    """Describe the credentials in use. Call this in a thread, since it reads the kubeconfig."""
    from aioinformer._client.kubeconfig.files import KubeconfigFiles

    if options.server is not None:
        return "none (anonymous)"
    paths = kubeconfig_paths(options.kubeconfig, os.environ)
    if not paths:
        return POD_CREDENTIALS
    try:
        files = KubeconfigFiles.read(paths)
        if files.choose_no_cluster and options.context is None:
            return POD_CREDENTIALS
        name = files.choose_context(options.context)
        return f"{credential_kind(files.read_context(name))} (context {name}, {_join_paths(paths)})"
    except (ConfigurationError, OSError):
        return "unknown: the kubeconfig has just changed"


def _join_paths(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


# -- as JSON -----------------------------------------------------------------------------------


def _encode_report(
    report: ServerReport, resource_reports: Sequence[ResourceReport], *, ok: bool
) -> bytes:
    """Return the report as one line of JSON. Times are in seconds, sizes in bytes."""
    resources: list[Any] = [
        {**msgspec.to_builtins(each), "ok": each.ok} for each in resource_reports
    ]
    whole = {"ok": ok, "server": msgspec.to_builtins(report), "resources": resources}
    return msgspec.json.encode(whole) + b"\n"


# -- as a table --------------------------------------------------------------------------------

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
    lines = [
        _format_fact("server", " ".join((report.url, report.version))),
        _format_fact("credentials", report.credentials),
    ]
    if report.user:
        lines.append(_format_fact("user", report.user))
    if report.latency is not None and report.slowest is not None and report.first is not None:
        median, slowest, first = map(
            _format_milliseconds, (report.latency, report.slowest, report.first)
        )
        lines.append(_format_fact("latency", f"median {median}, slowest {slowest}, first {first}"))
    if resource_reports:
        lines += [(), *_format_table(resource_reports)]
    messages = [
        (each.resource, text) for each in resource_reports if (text := each.error or each.note)
    ]
    if report.error:
        messages.append(("server", report.error))
    if messages:
        lines.append(())
    for subject, text in messages:
        lines.append((StyledText(f"{printable(subject)}: ", "bold"), StyledText(printable(text))))
    return lines


def _format_fact(name: str, value: str) -> Line:
    return (StyledText(f"{name:<{LABEL_WIDTH}}", "dim"), StyledText(printable(value)))


def _format_table(resource_reports: Sequence[ResourceReport]) -> list[Line]:
    rows = [
        tuple(StyledText(heading, "bold") for heading in _HEADINGS),
        *map(_format_row, resource_reports),
    ]
    widths = [max(len(row[at].text) for row in rows) for at in range(len(_HEADINGS))]
    return [align_columns(row, widths) for row in rows]


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
