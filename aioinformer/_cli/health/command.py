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
from aioinformer._cli.arguments import HealthOptions
from aioinformer._cli.cluster_options import kind_of, kubeconfig_paths, namespace_of, scope_of
from aioinformer._cli.health.checks import Finding, ServerReport, check_resource, check_server
from aioinformer._cli.terminal.process import Terminal
from aioinformer._cli.terminal.style import Line, Span, Style, compact_bytes, printable, render
from aioinformer._client.auth.off_loop import off_loop
from aioinformer.errors import ConfigurationError, FetchError

__all__ = ["USUAL", "lines_of", "run_health"]

USUAL = ("pods", "services", "deployments.apps", "namespaces", "nodes")
"""What is looked at if nobody says what: namespaced and not, from two groups, and no secrets."""

FAILED = 1
UNCUT = 1_000_000
GAP = "   "
LABEL = 13
"""Columns of the names of facts."""


async def run_health(options: HealthOptions, terminal: Terminal) -> int:
    """Look, and print what was found; 0 if everything works.

    Raises:
        UsageError: no cluster is configured, or the namespace can't be one.
        OSError: nobody reads what is printed.
    """
    namespace_of(options.namespace, "--namespace")
    findings: list[Finding] = []
    async with Client.connect(kubeconfig=options.kubeconfig, context=options.context) as client:
        namespace = scope_of(client, options.namespace, everywhere=options.everywhere)
        report = ServerReport(
            url=client.server, credentials=await off_loop(partial(_kind, options))
        )
        try:
            terminal.notices.status(f"asking {client.server}")
            await check_server(client, report, timeout=options.timeout)
        except FetchError as error:
            report.error = str(error)
        else:
            for name in options.resources or USUAL:
                terminal.notices.status(f"looking at {name}")
                found = await check_resource(client, name, namespace, timeout=options.timeout)
                findings.append(found)
    terminal.notices.status("")
    ok = not report.error and all(finding.ok for finding in findings)
    if options.output == "json":
        await terminal.output.write(_document(report, findings, ok=ok))
    else:
        for line in lines_of(report, findings):
            text = render(line, UNCUT, colour=terminal.output.colour).rstrip()
            await terminal.output.write(f"{text}\n")
    return 0 if ok else FAILED


def _kind(options: HealthOptions) -> str:
    """How one shows who one is. Reads files, and has read them before: what they say is known."""
    from aioinformer._client.kubeconfig.files import KubeconfigFiles

    paths = kubeconfig_paths(options.kubeconfig, os.environ)
    if not paths:
        return "token of the pod's service account"
    try:
        files = KubeconfigFiles.read(paths)
        name = files.context(options.context)
        return f"{kind_of(files.chosen(name))} (context {name}, {_joined(paths)})"
    except ConfigurationError:
        return "unknown: the kubeconfig has just changed"


def _joined(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


# -- as JSON -----------------------------------------------------------------------------------


def _document(report: ServerReport, findings: Sequence[Finding], *, ok: bool) -> bytes:
    """One document in one line. Times are in seconds, sizes in bytes."""
    resources: list[Any] = [
        {**msgspec.to_builtins(finding), "ok": finding.ok} for finding in findings
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


def lines_of(report: ServerReport, findings: Sequence[Finding]) -> list[Line]:
    """What is printed, line by line."""
    lines = [
        _fact("server", " ".join((report.url, report.version))),
        _fact("credentials", report.credentials),
    ]
    if report.latency is not None and report.slowest is not None and report.first is not None:
        times = f"median {_milliseconds(report.latency)}, slowest {_milliseconds(report.slowest)}"
        lines.append(_fact("latency", f"{times}, first {_milliseconds(report.first)}"))
    if findings:
        lines += [(), *_table(findings)]
    said = [
        (finding.resource, text) for finding in findings if (text := finding.error or finding.note)
    ]
    if report.error:
        said.append(("server", report.error))
    if said:
        lines.append(())
    for what, text in said:
        lines.append((Span(f"{printable(what)}: ", "bold"), Span(printable(text))))
    return lines


def _fact(name: str, value: str) -> Line:
    return (Span(f"{name:<{LABEL}}", "dim"), Span(printable(value)))


def _table(findings: Sequence[Finding]) -> list[Line]:
    rows = [tuple(Span(heading, "bold") for heading in _HEADINGS), *map(_row, findings)]
    widths = [max(len(row[at].text) for row in rows) for at in range(len(_HEADINGS))]
    return [_padded(row, widths) for row in rows]


def _padded(row: Line, widths: Sequence[int]) -> Line:
    padded: list[Span] = []
    for span, width in zip(row, widths, strict=True):
        padded += [span, Span(" " * (width - len(span.text)) + GAP)]
    return tuple(padded[:-1])


def _row(finding: Finding) -> Line:
    return (
        Span(printable(finding.resource)),
        Span(finding.scope or "-"),
        _answer(finding.lists),
        _answer(finding.watches),
        Span(finding.strategy or "-"),
        _answer(finding.bookmarks, bad="yellow"),
        Span("-" if finding.objects is None else f"{finding.objects:,}"),
        Span("-" if finding.size is None else compact_bytes(finding.size)),
        Span("-" if finding.synced is None else _duration(finding.synced)),
    )


def _answer(value: bool | None, *, bad: Style = "red") -> Span:
    if value is None:
        return Span("-", "dim")
    return Span("yes", "green") if value else Span("no", bad)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
