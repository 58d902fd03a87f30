"""OpenTelemetry spans of informers, handlers and reconciles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode

from aioinformer import (
    Client,
    Controller,
    Event,
    KubeObject,
    ListRequest,
    ObjectKey,
    ReconcileContext,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer._core.instrumentation import Tracing
from aioinformer.adapters.opentelemetry import OpenTelemetryTracing, trace_headers
from aioinformer.testing import ClusterSource
from tests.client.servers import http_server
from tests.runtime.informers import (
    FAST_BACKOFF,
    cluster_with_pods,
    label_pod,
    running_in_background,
    running_informer,
)
from tests.runtime.scripted_source import (
    ErrorResponse,
    ScriptedListerWatcher,
    added,
    body,
    error_response,
    initial_events_end,
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
)


class Traced:
    """The spans that an SDK exports."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = OpenTelemetryTracing(self.provider, handlers=True)

    def spans(self, *names: str) -> list[ReadableSpan]:
        """Those that have ended, of these names, in the order in which they did."""
        return [each for each in self.exporter.get_finished_spans() if each.name in names]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found


@pytest.fixture(name="traced")
def an_sdk() -> Iterator[Traced]:
    traced = Traced()
    yield traced
    traced.provider.shutdown()


def is_tracing(tracing: Tracing) -> Tracing:
    """``tracing``: type checkers see here that it is one."""
    return tracing


def said(span: ReadableSpan) -> Mapping[str, object]:
    """Its attributes, without our prefix."""
    return {
        name.removeprefix("aioinformer."): value for name, value in (span.attributes or {}).items()
    }


def number(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.span_id
    return found


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return span.parent is not None and span.parent.span_id == number(parent)


def linked(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def scripted(source: ScriptedListerWatcher, tracing: Tracing) -> SharedInformer:
    return SharedInformer(source, name="pods", tracing=tracing, backoff=FAST_BACKOFF)


# -- requests ----------------------------------------------------------------------------------


async def test_a_list_of_several_pages_is_one_state_with_a_child_for_each(traced: Traced) -> None:
    answers = (
        list_response(body("a", 1), body("b", 2), token="next"),
        list_response(body("c", 3), token="last"),
        list_response(version="10"),
    )
    source = scripted_lister_watcher(*answers)
    async with running_informer(scripted(source, is_tracing(traced.tracing))):
        state, pages = traced.one("state pods"), traced.spans("list pods")
        await source.wait_for_request(4)
    assert [said(each)["outcome"] for each in pages] == ["more", "more", "complete"]
    assert [said(each)["received.events"] for each in pages] == [2, 1, 0]
    assert all(is_child(each, state) for each in pages)
    assert {name: said(state)[name] for name in ("requests", "received.events")} == {
        "requests": 3,
        "received.events": 3,
    }
    sent = sum(len(chunk) for each in answers for chunk in each.chunks)
    assert said(state)["received.bytes"] == sent
    assert (state.kind, pages[0].kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    watch = traced.one("watch pods")
    assert said(watch)["outcome"] == "cancelled"
    assert watch.parent is state.parent is None
    assert linked(watch) == [number(state)], "each links to what came before it"


async def test_the_span_of_a_watch_lists_initial_state_ends_before_its_watch(
    traced: Traced,
) -> None:
    initial = (added("a", 1), added("b", 2), initial_events_end(10))
    source = scripted_lister_watcher(
        watch_response(*initial, added("c", 11), never_ends=True), watch_lists=True
    )
    async with running_informer(scripted(source, traced.tracing)) as informer:
        state = traced.one("state pods")
        assert traced.spans("watchlist pods") == []
        await wait_until(lambda: len(informer.lister.list()) == 3)
    watched = traced.one("watchlist pods")
    assert is_child(watched, state)
    assert [each.name for each in watched.events] == ["state complete"]
    assert said(watched)["received.bytes"] == sum(map(len, (*initial, added("c", 11))))


async def test_an_error_ends_the_state_and_the_next_attempt_links_to_it(traced: Traced) -> None:
    source = scripted_lister_watcher(
        error_response(403, "Forbidden", "pods is forbidden"), list_response(body("a", 1))
    )
    async with running_informer(scripted(source, traced.tracing)):
        failed, state = traced.spans("state pods")
    request = traced.spans("list pods")[0]
    for span in (failed, request):
        assert span.status.status_code is StatusCode.ERROR
        assert "pods is forbidden" in (span.status.description or "")
        seen = {name: said(span)[name] for name in ("error.type", "status_code", "outcome")}
        assert seen == {"error.type": "Forbidden", "status_code": 403, "outcome": "access_denied"}
    assert linked(state) == [number(failed)]
    assert state.status.status_code is StatusCode.UNSET


async def test_a_relist_is_a_state_of_its_own(traced: Traced) -> None:
    expired = error_response(410, "Expired", "too old")
    source = scripted_lister_watcher(
        list_response(body("a", 1)), expired, list_response(body("b", 12), version="12")
    )
    async with running_informer(scripted(source, traced.tracing)) as informer:
        await wait_until(lambda: [each.name for each in informer.lister.list()] == ["b"])
    first, second = traced.spans("state pods")
    watch = traced.spans("watch pods")[0]
    assert said(watch)["error.type"] == "Expired"
    assert linked(watch) == [number(first)]
    assert linked(second) == [number(watch)]


async def test_open_spans_end_with_the_informer(traced: Traced) -> None:
    source = scripted_lister_watcher()  # it never answers
    informer = scripted(source, traced.tracing)
    async with running_in_background(informer.run()):
        await source.wait_for_request(1)
    assert said(traced.one("list pods"))["outcome"] == "cancelled"
    assert said(traced.one("state pods"))["outcome"] == "cancelled"


async def test_a_bug_in_a_source_leaves_no_span_open(traced: Traced) -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1)), ErrorResponse(ZeroDivisionError("a bug"))
    )
    informer = scripted(source, traced.tracing)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(informer.run(), 30)
    assert len(traced.spans("watch pods")) == 1
    assert not trace.get_current_span().get_span_context().is_valid


async def test_the_span_of_a_request_is_current_while_it_is_sent(traced: Traced) -> None:
    """So an instrumented HTTP client makes children of it, and sends its traceparent."""
    seen: list[int] = []

    class Looking(ScriptedListerWatcher):
        @asynccontextmanager
        async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
            seen.append(trace.get_current_span().get_span_context().span_id)
            async with super().list(request) as chunks:
                yield chunks

    source = Looking(scripted_lister_watcher(list_response(body("a", 1))).responses)
    async with running_informer(scripted(source, traced.tracing)):
        pass
    assert seen == [number(traced.one("list pods"))]


async def test_a_request_carries_its_trace_to_the_api_server(traced: Traced) -> None:
    seen: dict[str, str | None] = {}

    async def answer(request: web.Request) -> web.Response:
        verb = "watch" if "watch" in request.query else "list"
        seen.setdefault(verb, request.headers.get("traceparent"))
        if verb == "watch":
            return web.Response(status=403)
        return web.Response(
            body=b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}'
        )

    async with http_server(answer) as server, Client(server, headers=trace_headers) as client:
        assert trace_headers() == {}, "no span is current here"
        await client.get_raw("/version")
        outside = seen.pop("list")
        async with SharedInformerFactory(
            client, tracing=traced.tracing, watch_list=False
        ) as informers:
            informers.informer("pods")
            await wait_until(lambda: len(traced.spans("watch pods")) == 1)

    listed, watched = traced.one("list pods"), traced.spans("watch pods")[0]
    assert outside is None
    for verb, span in (("list", listed), ("watch", watched)):
        assert span.context is not None
        trace_id, span_id = span.context.trace_id, span.context.span_id
        assert (seen[verb] or "")[:53] == f"00-{trace_id:032x}-{span_id:016x}-"


# -- handlers ----------------------------------------------------------------------------------


async def test_spans_that_a_handler_starts_are_children_of_its_call(traced: Traced) -> None:
    tracer = traced.provider.get_tracer("app")

    async def store(event: Event) -> None:
        with tracer.start_as_current_span("query before"):
            await asyncio.sleep(0)
        with tracer.start_as_current_span("query"):
            pass

    def count(event: Event) -> None:
        with tracer.start_as_current_span("count"):
            pass

    def blocking(event: Event) -> None:
        with tracer.start_as_current_span("read a file"):
            pass

    async with factory(traced) as informers:
        pods = informers.informer("pods")
        pods.add_handler(store, name="store")
        pods.add_handler(store, name="side by side", concurrency=2)
        pods.add_handler(count, name="count")
        pods.add_handler(blocking, name="block", run_in_thread=True)
        for each in pods.registrations:
            await each.wait_synced(timeout=30)
    names = {"store": 2, "side by side": 2, "count": 1, "block": 1}
    for name, inside in names.items():
        call = traced.one(f"handle {name}")
        assert said(call) == {"informer": "pods", "listener": name, "event": "added"}
        assert call.parent is None
        found = traced.spans("query before", "query", "count", "read a file")
        assert sum(is_child(each, call) for each in found) == inside


def factory(traced: Traced, tracing: Tracing | None = None) -> SharedInformerFactory:
    source = ClusterSource(cluster_with_pods("secret-name"))
    return SharedInformerFactory(source, tracing=tracing or traced.tracing)


async def test_only_events_that_a_handler_receives_have_spans(traced: Traced) -> None:
    cluster = cluster_with_pods("a")
    async with SharedInformerFactory(ClusterSource(cluster), tracing=traced.tracing) as informers:
        pods = informers.informer("pods")
        seen: list[str] = []

        @pods.on_update
        async def moved(old: KubeObject, new: KubeObject, *, resync: bool) -> None:
            await asyncio.sleep(0)
            seen.append(new.name)

        class Both:
            def on_delete(self, obj: KubeObject, *, reason: str) -> None:
                seen.append(reason)

        pods.add_handler(Both())
        await informers.wait_synced(timeout=30)
        label_pod(cluster, "a", "1")
        await wait_until(lambda: seen == ["a"])
        cluster.delete("pods", "a")
        await wait_until(lambda: seen == ["a", "deleted"])
    calls = [each for each in traced.exporter.get_finished_spans() if each.name[:6] == "handle"]
    assert sorted(str(said(each)["event"]) for each in calls) == ["deleted", "updated"]


async def test_the_span_of_a_failed_handler_names_the_class_of_its_exception(
    traced: Traced,
) -> None:
    async def clumsy(event: Event) -> None:
        raise ValueError("password=hunter2")

    def plain(event: Event) -> None:
        raise KeyError("hunter2")

    async with factory(traced) as informers:
        pods = informers.informer("pods")
        for handler in (clumsy, plain):
            await pods.add_handler(handler, name=handler.__name__).wait_synced(timeout=30)
    for name, error in (("clumsy", "ValueError"), ("plain", "KeyError")):
        call = traced.one(f"handle {name}")
        assert said(call)["error.type"] == error
        assert call.status.status_code is StatusCode.ERROR
        assert call.status.description is None
        assert not call.events


async def test_handlers_have_no_spans_by_default(traced: Traced) -> None:
    seen: list[str] = []
    async with factory(traced, OpenTelemetryTracing(traced.provider)) as informers:
        registration = informers.informer("pods").add_handler(lambda e: seen.append(e.obj.name))
        await registration.wait_synced(timeout=30)
    assert seen == ["secret-name"]
    assert {each.name.split()[0] for each in traced.exporter.get_finished_spans()} <= {
        "state",
        "list",
        "watchlist",
        "watch",
    }


# -- reconciles --------------------------------------------------------------------------------


async def test_a_run_of_a_reconciler_is_current_in_it(traced: Traced) -> None:
    seen: list[int] = []

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        await asyncio.sleep(0)
        seen.append(trace.get_current_span().get_span_context().span_id)
        if len(seen) == 1:
            raise ValueError("hunter2")

    async with factory(traced) as informers:
        pods = informers.informer("pods")
        async with Controller(pods, reconcile, name="shop", tracing=traced.tracing):
            await wait_until(lambda: len(traced.spans("reconcile shop")) == 2)
    failed, done = traced.spans("reconcile shop")
    assert seen == [number(failed), number(done)]
    assert said(failed) == {"controller": "shop", "error.type": "ValueError"}
    assert said(done) == {"controller": "shop"}


# -- contents ---------------------------------------------------------------------------------


async def test_no_span_names_an_object_or_a_selector(traced: Traced) -> None:
    cluster = cluster_with_pods("secret-name")
    async with SharedInformerFactory(ClusterSource(cluster), tracing=traced.tracing) as informers:
        pods = informers.informer("pods", fields={"metadata.name": "secret-name"})
        await pods.add_handler(lambda event: None, name="print").wait_synced(timeout=30)
    spans = traced.exporter.get_finished_spans()
    assert {each.name for each in spans} >= {"state pods (selected)", "handle print"}
    assert "secret-name" not in "".join(each.to_json() for each in spans)


async def test_without_an_sdk_nothing_happens() -> None:
    tracing = OpenTelemetryTracing(NoOpTracerProvider(), handlers=True)
    seen: list[str] = []
    source = ClusterSource(cluster_with_pods("a"))
    async with SharedInformerFactory(source, tracing=tracing) as informers:
        registration = informers.informer("pods").add_handler(lambda e: seen.append(e.obj.name))
        await registration.wait_synced(timeout=30)
    assert seen == ["a"]
    assert repr(tracing) == "<OpenTelemetryTracing handlers=True>"
