"""The display of the demo: pure functions from a snapshot and a size to styled lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aioinformer._cli.demo.counters import EventSummary
from aioinformer._cli.terminal.style import EVENT_STYLES, Line, Style, StyledText, compact_bytes
from aioinformer._core.quantities import quantity


@dataclass(frozen=True, slots=True)
class Glyphs:
    bar: str
    levels: str
    """The characters of the small chart, from empty to full."""
    rule: str


UNICODE = Glyphs("█", " ▁▂▃▄▅▆▇█", "─")
ASCII = Glyphs("#", " .:-=+*#", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSnapshot:
    elapsed: float
    """Seconds since the beginning."""
    server: str
    interruption: str
    state: str
    """The informer's state; see ``Health``."""
    health: str
    resource_version: str
    objects: int
    size: int
    """Bytes of JSON in the cache."""
    namespaces: Mapping[str, int]
    nodes: Mapping[str, int]
    added: int
    updated: int
    deleted: int
    restarts: int
    rate: float
    """Events a second."""
    history: Sequence[int]
    """Events in each half second, the oldest first."""
    latest: Sequence[EventSummary]
    """The latest events, the newest first."""


FIXED_LINES = 11
"""The lines besides bars and events: the title, five facts, two headings, three blank lines."""

LABEL_WIDTH = 9
"""The width of the names of facts, in columns."""

_STATES: dict[str, Style] = {"watching": "green", "listing": "cyan", "waiting": "yellow"}


def draw_dashboard(
    snapshot: DashboardSnapshot, *, width: int, height: int, glyphs: Glyphs = UNICODE
) -> list[Line]:
    """Return the lines of the display, at most ``height``, the most important first."""
    room = max(0, height - FIXED_LINES)
    groups = max(len(snapshot.namespaces), len(snapshot.nodes))
    bars = min(groups, (room + 2) // 2)
    lines: list[Line] = [_draw_title(snapshot, width), ()]
    lines += _draw_facts(snapshot, width, glyphs)
    lines += [(), *_draw_bars(snapshot, width, bars, glyphs), ()]
    lines += _draw_latest(snapshot, width, room - bars, glyphs)
    return lines[: max(0, height)]


def _draw_title(snapshot: DashboardSnapshot, width: int) -> Line:
    name = " aioinformer demo"
    clock = f"{snapshot.elapsed:.1f} s"
    where = f"  pods of {snapshot.server}"
    gap = width - len(name) - len(where) - len(clock)
    return (
        StyledText(name, "bold"),
        StyledText(where, "dim"),
        StyledText(" " * max(1, gap)),
        StyledText(clock, "dim"),
    )


def _draw_facts(snapshot: DashboardSnapshot, width: int, glyphs: Glyphs) -> list[Line]:
    style = _STATES.get(snapshot.state, "red")
    events = f"{snapshot.rate:,.0f}/s".ljust(9)
    return [
        _draw_fact("server", StyledText(snapshot.interruption or "serving")),
        _draw_fact("informer", StyledText(snapshot.health, style)),
        _draw_fact(
            "cache",
            StyledText(f"{snapshot.objects:,} objects", "bold"),
            StyledText(
                f", {compact_bytes(snapshot.size)} of JSON, "
                f"resourceVersion {snapshot.resource_version} applied"
            ),
        ),
        _draw_fact(
            "events",
            StyledText(events, "bold"),
            StyledText(f"{snapshot.added:,} added  ", "green"),
            StyledText(f"{snapshot.updated:,} updated  ", "cyan"),
            StyledText(f"{snapshot.deleted:,} deleted  ", "red"),
            StyledText(f"{snapshot.restarts:,} restarts", "dim"),
        ),
        _draw_fact(
            "", StyledText(_draw_chart(snapshot.history, width - LABEL_WIDTH - 2, glyphs), "blue")
        ),
    ]


def _draw_fact(name: str, *spans: StyledText) -> Line:
    return StyledText(f" {name:<{LABEL_WIDTH}}", "dim"), *spans


def _draw_chart(history: Sequence[int], width: int, glyphs: Glyphs) -> str:
    """Return a row of small bars, the newest at the right."""
    shown = list(history)[-max(1, width) :]
    highest = max(shown, default=0) or 1
    top = len(glyphs.levels) - 1
    return "".join(glyphs.levels[-(-count * top // highest)] for count in shown)


# -- bars --------------------------------------------------------------------------------------


def _draw_bars(snapshot: DashboardSnapshot, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    half = (width - 4) // 2
    left = _draw_group("BY NAMESPACE", snapshot.namespaces, half, rows, glyphs)
    right = _draw_group('BY NODE, from the index "node"', snapshot.nodes, half, rows, glyphs)
    gap = (StyledText("  "),)
    return [(StyledText(" "), *one, *gap, *other) for one, other in zip(left, right, strict=True)]


def _draw_group(
    heading: str, counts: Mapping[str, int], width: int, rows: int, glyphs: Glyphs
) -> list[Line]:
    """Return a heading and ``rows`` lines, each of exactly ``width`` columns."""
    shown = _fit_counts(counts, rows)
    names = max(map(len, shown), default=0)
    numbers = max((len(f"{count:,}") for count in shown.values()), default=0)
    room = max(0, width - names - numbers - 3)
    scale = max(counts.values(), default=0) or 1
    lines: list[Line] = [_draw_rule(heading, width, glyphs)]
    for name, count in shown.items():
        drawn = -(-min(count, scale) * room // scale) if name in counts else 0
        bar = (glyphs.bar * drawn).ljust(room)
        lines.append(
            (
                StyledText(f"{name:<{names}}  "),
                StyledText(f"{count:>{numbers},} "),
                StyledText(bar, "blue"),
            )
        )
    lines += [(StyledText(" " * width),)] * (rows - len(shown))
    return lines


def _fit_counts(counts: Mapping[str, int], rows: int) -> dict[str, int]:
    """Return at most ``rows`` counts; the last one sums up the counts that have no row."""
    names = sorted(counts)
    if len(names) <= rows:
        return {name: counts[name] for name in names}
    first, rest = names[: max(0, rows - 1)], names[max(0, rows - 1) :]
    shown = {name: counts[name] for name in first}
    if rows:
        shown[f"{len(rest)} more"] = sum(counts[name] for name in rest)
    return shown


def _draw_rule(heading: str, width: int, glyphs: Glyphs) -> Line:
    text = f"{heading} "
    return StyledText(text[:width], "bold"), StyledText(
        glyphs.rule * max(0, width - len(text)), "dim"
    )


# -- events ------------------------------------------------------------------------------------


def _draw_latest(snapshot: DashboardSnapshot, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = [
        (StyledText(" "), *_draw_rule("LATEST, from an event stream", width - 2, glyphs))
    ]
    shown = list(snapshot.latest)[: max(0, rows)]
    names = max((len(summary.key) for summary in shown), default=0)
    for at, kind, key, detail in shown:
        head = (
            StyledText(f" {at:7.2f}  ", "dim"),
            StyledText(f"{kind:<9}", EVENT_STYLES.get(kind, "")),
        )
        lines.append((*head, StyledText(f"{key:<{names}}  "), StyledText(detail, "dim")))
    return lines


# -- without a terminal ------------------------------------------------------------------------


def format_line(snapshot: DashboardSnapshot) -> str:
    return (
        f"{snapshot.elapsed:6.1f} s  {quantity(snapshot.objects, 'object')}  "
        f"{compact_bytes(snapshot.size)}  {snapshot.rate:.0f} events/s  "
        f"added {snapshot.added}  updated {snapshot.updated}  deleted {snapshot.deleted}  "
        f"rv {snapshot.resource_version}  {snapshot.health}"
    )
