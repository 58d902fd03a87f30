"""``aioinformer shards NAME``: one list of Leases, and the report as a table or as JSON."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec

from aioinformer._cli.cluster_options import check_namespace, choose_namespace, connect
from aioinformer._cli.options import ShardsCommandOptions
from aioinformer._cli.shards.report import GroupReport, MemberReport, read_group
from aioinformer._cli.terminal.command_process import EXIT_FAILED, Terminal
from aioinformer._cli.terminal.style import Line, StyledText, align_columns, printable, render
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import RequestTimedOut
from aioinformer.leaderelection.state.lease import GROUP_LABEL

LABEL_WIDTH = 11
"""The width of the names of facts, in columns."""

_HEADINGS = ("MEMBER", "STATE", "RENEWED", "HELD", "ASSIGNED", "SHARDS")


async def run_shards(options: ShardsCommandOptions, terminal: Terminal) -> int:
    """Print the members of a group, and return 0 if each shard has one owner."""
    check_namespace(options.namespace, "--namespace")
    async with connect(options) as client:
        namespace = choose_namespace(client, options.namespace, everywhere=False)
        api = client.api(find_built_in("leases"), namespace=namespace)
        try:
            async with asyncio.timeout(options.timeout):
                leases = await api.list(labels={GROUP_LABEL: options.group})
        except TimeoutError as error:
            late = f"the Leases were not listed within {options.timeout:g} s"
            raise RequestTimedOut(late, phase="list") from error
    found: list[Any] = [lease.to_dict() for lease in leases]
    report = read_group(options.group, namespace, found, dt.datetime.now(dt.UTC))
    if report is None:
        terminal.messages.show(f"no group {options.group} in namespace {namespace}")
        return EXIT_FAILED
    if options.output == "json":
        whole = {**msgspec.to_builtins(report), "ok": report.ok}
        await terminal.output.write(msgspec.json.encode(whole) + b"\n")
    else:
        for line in format_group(report):
            text = render(line, colour=terminal.output.colour).rstrip()
            await terminal.output.write(f"{text}\n")
    return 0 if report.ok else EXIT_FAILED


def format_group(report: GroupReport) -> list[Line]:
    facts = [
        ("group", f"{report.namespace}/{report.group}, {report.count} shards by {report.by}"),
        ("epoch", f"{report.epoch}, assigned by {report.leader or 'no member'}"),
        ("unclaimed", report.unclaimed or "none"),
    ]
    if report.contested:
        facts.append(("contested", report.contested))
    return [*(_format_fact(*fact) for fact in facts), (), *_format_table(report.members)]


def _format_fact(name: str, value: str) -> Line:
    return (StyledText(f"{name:<{LABEL_WIDTH}}", "dim"), StyledText(printable(value)))


def _format_table(members: Sequence[MemberReport]) -> list[Line]:
    rows = [tuple(StyledText(heading, "bold") for heading in _HEADINGS), *map(_format_row, members)]
    widths = [max(len(row[at].text) for row in rows) for at in range(len(_HEADINGS))]
    return [align_columns(row, widths) for row in rows]


def _format_row(member: MemberReport) -> Line:
    return (
        StyledText(printable(member.identity)),
        StyledText(member.state, "green" if member.state == "member" else "yellow"),
        StyledText("-" if member.renewed is None else f"{member.renewed:.0f} s ago"),
        StyledText(str(member.held)),
        StyledText(str(member.assigned)),
        StyledText(member.shards or "-"),
    )
