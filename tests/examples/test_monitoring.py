"""The dashboard and the alerts ask for what there is, and alerts come when they should."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from aioinformer import (
    Controller,
    Event,
    LeaderElector,
    ObjectKey,
    ReconcileContext,
    Result,
    SharedInformerFactory,
)
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.testing import Cluster, ClusterSource
from tests.runtime.informers import FAST_BACKOFF
from tests.runtime.scripted_source import (
    added,
    body,
    error_response,
    list_response,
    scripted_source,
    wait_until,
    watch_response,
)

MONITORING = Path(__file__).parent.parent.parent / "examples" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana-dashboard.json").read_text())
ALERTS: dict[str, Any] = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]

OF_THE_SCRAPE = frozenset({"job", "instance"})
"""Labels that Prometheus adds."""

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool isn't installed")


def targets() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the panels' queries with the panels' titles."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target


BLOCKING_COUNTERS = ("handler_blocking_calls", "reconcile_blocking_runs")
"""Metrics that a program has once a call has blocked the event loop."""

QUERIES = [
    *((f"{title}: {target['refId']}", target["expr"]) for title, target in targets()),
    *((rule["alert"], rule["expr"]) for rule in RULES),
]


# -- what is asked for is there ------------------------------------------------------------------


async def exposed() -> dict[str, set[str]]:
    """Return the metrics of a program that reports each of them: labels by name."""
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    leases = ClusterSource(Cluster()).api("leases")
    LeaderElector(leases, "web/operator", identity="me", metrics=metrics)
    source = scripted_source(
        pods=[
            error_response(403, "Forbidden"),
            list_response(body("a", 1)),
            watch_response(added("b", 11)),
        ]
    )

    def hold_loop() -> None:
        time.sleep(0.4)

    async def clumsy(event: Event) -> None:
        while not registration.blocking_calls:
            hold_loop()
            await asyncio.sleep(0)
        raise ValueError

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result:
        if not controller.health.blocking_runs:
            hold_loop()
        return Result(requeue=True)

    async with SharedInformerFactory(source, metrics=metrics, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        registration = pods.add_handler(clumsy, name="clumsy")
        async with Controller(pods, reconcile, name="shop", metrics=metrics) as controller:
            await registration.wait_synced(timeout=30)
            await wait_until(lambda: controller.health.runs > 2)
            blocking = {f"aioinformer_{name}_total" for name in BLOCKING_COUNTERS}
            await wait_until(lambda: blocking <= labels_by_name(registry).keys())
            return labels_by_name(registry)


def labels_by_name(registry: CollectorRegistry) -> dict[str, set[str]]:
    return {
        sample.name: set(sample.labels)
        for family in registry.collect()
        for sample in family.samples
    }


async def test_the_dashboard_and_the_alerts_ask_for_metrics_and_labels_that_exist() -> None:
    known = await exposed()
    for where, query in QUERIES:
        used = re.findall(r"\b(aioinformer_\w+)(?:\{([^}]*)\})?", query)
        assert used, where
        labels: set[str] = set(OF_THE_SCRAPE)
        for name, matchers in used:
            assert name in known, f"{where} asks for {name}"
            matched = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            assert matched <= known[name] | OF_THE_SCRAPE, f"{where} matches {matched}"
            labels |= known[name]
        for grouped in re.findall(r"\bby \(([^)]*)\)", query):
            assert set(re.split(r",\s*", grouped)) <= labels, f"{where} groups by {grouped}"


async def test_every_metric_is_on_the_dashboard_or_follows_from_one_that_is() -> None:
    shown = " ".join(query for _, query in QUERIES)
    missing = {
        name
        for name in map(_family, await exposed())
        if not re.search(rf"\b{name}(_total|_bucket|_seconds_bucket)?\b", shown)
    }
    assert missing == {
        "aioinformer_resource_version",  # a number that says nothing by itself
        "aioinformer_workqueue_adds",
        "aioinformer_workqueue_delayed",
        "aioinformer_workqueue_processing",
        "aioinformer_workqueue_unfinished_work_seconds",
    }


def _family(sample: str) -> str:
    return re.sub(r"_(total|bucket|count|sum|created)$", "", sample)


# -- the files -----------------------------------------------------------------------------------


def test_the_dashboard_can_be_imported_and_its_panels_have_valid_targets() -> None:
    assert DASHBOARD["schemaVersion"] >= 39  # Grafana 11
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource", "job", "informer"}
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for _, target in targets():
        assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
        assert used <= variables
        by = re.search(r"\bby \(([^)]*)\)", target["expr"])
        grouped = set(re.split(r",\s*", by[1])) if by else set[str]()
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped


def test_panels_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_every_alert_has_a_severity_a_summary_and_a_description(rule: Mapping[str, Any]) -> None:
    assert re.fullmatch(r"\d+m", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    annotations = rule["annotations"]
    assert set(annotations) == {"summary", "description"}
    assert len(annotations["summary"]) < 100
    assert annotations["description"].endswith(".")
    grouped = {
        name
        for inside in re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        for name in re.split(r",\s*", inside)
    } or {"job", "instance", "informer"}
    for text in annotations.values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= grouped


# -- promtool, where there is one ------------------------------------------------------------------


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(
        [PROMTOOL or "promtool", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, (_, query) in enumerate(QUERIES)
    ]
    (tmp_path / "queries.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]})
    )
    promtool("check", "rules", tmp_path / "queries.yaml", MONITORING / "alerts.yaml")


FRESH = 'aioinformer_freshness_seconds{job="app", instance="a", informer="pods"}'
BLOCKING = 'aioinformer_listeners_blocking{job="app", instance="a", informer="pods"}'
ENDED = 'aioinformer_requests_ended_total{job="app", instance="a", informer="pods", %s}'
LISTS, PAGES = ENDED % 'verb="list", cause="complete"', ENDED % 'verb="list", cause="more"'
INFORMERS = 'aioinformer_informers{job="app", instance="a", informer="pods"}'
SYNCED = 'aioinformer_informers_synced{job="app", instance="a", informer="pods"}'
HELD = 'aioinformer_handler_blocking_calls_total{job="app", instance="a", listener="audit"}'
HELD_RUNS = 'aioinformer_reconcile_blocking_runs_total{job="app", instance="a", controller="shop"}'
LEADER = 'aioinformer_leader{job="app", instance="%s", lease="web/operator"}'
RUNS = 'aioinformer_reconcile_total{job="app", instance="a", controller="shop", result="%s"}'


@needs_promtool
@pytest.mark.parametrize(
    ("alert", "series", "fires"),
    [
        pytest.param("InformerCacheStale", {FRESH: "0+60x60"}, True, id="stale"),
        pytest.param("InformerCacheStale", {FRESH: "0 30 59 5 35 0+0x60"}, False, id="bookmarks"),
        pytest.param("InformerCacheStale", {FRESH: "+Inf+0x60"}, False, id="never-fresh"),
        pytest.param("InformerListenerBlocks", {BLOCKING: "1+0x60"}, True, id="blocking"),
        pytest.param("InformerListenerBlocks", {BLOCKING: "0 1 0 1 0 1 0+0x60"}, False, id="full"),
        pytest.param("HandlerBlocksEventLoop", {HELD: "0+2x60"}, True, id="handler-blocks"),
        pytest.param("HandlerBlocksEventLoop", {HELD: "0+0x30 1+0x30"}, False, id="blocked-once"),
        pytest.param("ReconcilerBlocksEventLoop", {HELD_RUNS: "0+2x60"}, True, id="run-blocks"),
        pytest.param("InformerNotSynced", {INFORMERS: "2x60", SYNCED: "1x60"}, True, id="unsynced"),
        pytest.param("InformerNotSynced", {INFORMERS: "2x60", SYNCED: "2x60"}, False, id="synced"),
        pytest.param("InformerRetriesRising", {LISTS: "0+0x60 1+2x60"}, True, id="rising"),
        pytest.param("InformerRetriesRising", {LISTS: "0+1x120"}, False, id="steady"),
        pytest.param(
            "InformerRetriesRising",
            {LISTS: "1x75 2x60", PAGES: "100x75 200x60"},
            False,
            id="one-in-pages",
        ),
        pytest.param(
            "ControllerNoLeader", {LEADER % "a": "0x60", LEADER % "b": "0x60"}, True, id="nobody"
        ),
        pytest.param(
            "ControllerNoLeader", {LEADER % "a": "0x60", LEADER % "b": "1x60"}, False, id="leader"
        ),
        pytest.param(
            "ControllerReconcilesFail",
            {RUNS % "error": "0+9x60", RUNS % "success": "0+1x60"},
            True,
            id="failing",
        ),
    ],
)
def test_alerts_fire_in_the_expected_cases_only(
    alert: str, series: Mapping[str, str], fires: bool, tmp_path: Path
) -> None:
    """Judged by whether the alert is there at all, not by its text, which has tests above."""
    at = "100m" if alert == "InformerRetriesRising" else "50m"
    firing = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    sample = [{"labels": "{}", "value": 1}] if fires else []
    test = {
        "rule_files": [str(MONITORING / "alerts.yaml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in series.items()
                ],
                "promql_expr_test": [{"expr": firing, "eval_time": at, "exp_samples": sample}],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    promtool("test", "rules", tmp_path / "test.yaml")
