"""Names that contain line breaks and escape sequences, in logs, errors, health and reprs.

Kubernetes allows any character but ``/`` and ``%`` in the names of RBAC objects.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import aioinformer.errors
from aioinformer import (
    Controller,
    Event,
    EventRecorder,
    KubeObject,
    ObjectKey,
    Problem,
    ReconcileContext,
    Result,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer._client.http.error_responses import build_status
from aioinformer._client.http.hints import hint_for_write_error
from aioinformer._core.objects.resources import find_built_in
from aioinformer.adapters.asgi.sse import FrameEncoder
from aioinformer.errors import (
    InformerError,
    InvalidPath,
    InvalidSelector,
    NotCached,
    PermanentError,
    Status,
    TemporaryError,
    server_error,
)
from aioinformer.testing import Cluster, ClusterSource

NAME = "a\n2026-01-01 ERROR forged\r\x00\x1b[31m\u2028\u202e\x85b"
KEY = ObjectKey("", NAME)
ROLES = "clusterroles"
FINALIZER = "example.com/cleanup"


def fail(obj: KubeObject) -> NoReturn:
    raise ValueError(f"bad: {obj.name}")


class Model(Struct):
    """A model that no role fits."""

    rules: int


async def wait_for_attempts() -> None:
    """Let everything fail once or twice."""
    await asyncio.sleep(0.3)


async def handler(factory: SharedInformerFactory, cluster: Cluster) -> None:
    roles = factory.informer(ROLES)

    async def handle(event: Event) -> None:
        fail(event.obj)

    async def hang(event: Event) -> None:
        await asyncio.sleep(3600)

    def slow(event: Event) -> None:
        sum(range(5_000_000))

    roles.add_handler(handle)
    roles.add_handler(hang, timeout=0.05)
    roles.add_handler(slow)
    await wait_for_attempts()
    assert NAME not in str(roles.health)


async def filtering(factory: SharedInformerFactory, cluster: Cluster) -> None:
    factory.informer(ROLES).add_handler(lambda event: None, filter=fail)
    await wait_for_attempts()


async def transforming(factory: SharedInformerFactory, cluster: Cluster) -> None:
    await rejected(factory.informer(ROLES, transform=fail))


async def indexing(factory: SharedInformerFactory, cluster: Cluster) -> None:
    await rejected(factory.informer(ROLES, indexers={"x": fail}))


async def modelling(factory: SharedInformerFactory, cluster: Cluster) -> None:
    await rejected(factory.informer(ROLES, model=Model))


async def rejected(roles: SharedInformer[Any]) -> None:
    await wait_for_attempts()
    assert roles.health.rejected == (str(KEY),)
    check(str(roles.health), str(KEY), repr(roles.rejection(KEY)))


async def converting(factory: SharedInformerFactory, cluster: Cluster) -> None:
    roles = factory.informer(ROLES, convert=fail)
    roles.add_handler(lambda event: event.obj)
    await roles.wait_synced(timeout=5)
    with pytest.raises(InformerError) as caught:
        roles.lister.get(KEY)
    check(str(caught.value))
    await wait_for_attempts()


async def controlling(factory: SharedInformerFactory, cluster: Cluster) -> None:
    roles = factory.informer(ROLES)

    async def raises(key: ObjectKey, ctx: ReconcileContext) -> None:
        ctx.log.info("reconcile")
        raise ValueError(f"bad: {key.name}")

    async def permanent(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise PermanentError(f"bad: {key.name}")

    async def temporary(key: ObjectKey, ctx: ReconcileContext) -> Result:
        raise TemporaryError(f"bad: {key.name}")

    async def hang(key: ObjectKey, ctx: ReconcileContext) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        raise ValueError(key.name)

    async def write(key: ObjectKey, ctx: ReconcileContext) -> None:
        await ctx.patch_status({"ready": True})

    def keys(obj: KubeObject) -> NoReturn:
        fail(obj)

    problems = list[Problem]()
    source = ClusterSource(cluster)
    async with (
        EventRecorder(
            source.api(find_built_in("events.events.k8s.io")), controller="test"
        ) as events,
        asyncio.timeout(30),
    ):
        for reconcile in (raises, permanent, temporary, hang, write):
            controller = Controller(
                *(roles, reconcile),
                timeout=0.1 if reconcile is hang else None,
                on_error=problems.append,
                events=events,
                shutdown_timeout=0.1,
                client=source,
                failure_condition="Ready",
            )
            controller.watches(roles, keys)
            async with controller:
                await wait_for_attempts()
                check(str(controller.health), repr(controller))
    assert problems
    check(*map(str, problems))


async def cleaning(factory: SharedInformerFactory, cluster: Cluster) -> None:
    cluster.create(ROLES, {"metadata": {"name": f"{NAME}2", "finalizers": [FINALIZER]}})
    cluster.delete(ROLES, f"{NAME}2")

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise PermanentError(key.name)

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        pass

    roles = factory.informer(ROLES)
    source = ClusterSource(cluster)
    async with Controller(
        roles, reconcile, finalizer=FINALIZER, cleanup=cleanup, client=source
    ) as controller:
        await wait_for_attempts()
        check(str(controller.health))


async def feeding(factory: SharedInformerFactory, cluster: Cluster) -> None:
    def encode(informer: object, obj: KubeObject) -> NoReturn:
        fail(obj)

    roles = factory.informer(ROLES)
    async with roles.events() as events:
        async for event in events:
            check(repr(event), repr(event.obj))
            frame = FrameEncoder(encode).encode(roles, event)
            assert NAME.encode() not in frame
            break


async def waiting(factory: SharedInformerFactory, cluster: Cluster) -> None:
    roles = factory.informer(ROLES)
    await roles.wait_synced(timeout=5)
    for wait in (
        roles.wait_until(KEY, lambda obj: False, timeout=0.01),
        roles.wait_for({"metadata": {"name": NAME, "resourceVersion": "99999"}}, timeout=0.01),
    ):
        with pytest.raises(InformerError) as caught:
            await wait
        check(str(caught.value))
    with pytest.raises(NotCached) as missed:
        roles.lister[ObjectKey("web", NAME)]
    check(str(missed.value), missed.value.key)


Scenario = Callable[[SharedInformerFactory, Cluster], Awaitable[None]]


@pytest.mark.parametrize(
    "scenario",
    [
        *(handler, filtering, transforming, indexing, modelling, converting),
        *(controlling, cleaning, feeding, waiting),
    ],
)
async def test_no_log_record_contains_what_is_not_printable(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "aioinformer")
    cluster = Cluster()
    cluster.create(ROLES, {"metadata": {"name": NAME}})
    async with SharedInformerFactory(ClusterSource(cluster)) as factory:
        await scenario(factory, cluster)
    check(*(record.getMessage() for record in caplog.records))
    assert caplog.records


def check(*texts: str) -> None:
    for text in texts:
        assert text.isprintable(), text


ARGUMENTS: Mapping[str, object] = {
    "error": ValueError(NAME),
    "status": Status(500, NAME, NAME),
    "timeout": 1.0,
    "waited": 1.0,
    "limit": 1,
    "shard": 1,
    "left": (NAME,),
    "lacks": (NAME,),
    "candidates": (NAME,),
    "unsynced": {NAME: NAME},
    "key": KEY,
}


@pytest.mark.parametrize("name", sorted(aioinformer.errors.__all__))
def test_the_text_of_each_public_error_is_one_printable_line(name: str) -> None:
    kind = getattr(aioinformer.errors, name)
    if not (isinstance(kind, type) and issubclass(kind, InformerError)):
        pytest.skip("no error")
    required = [
        each
        for each in inspect.signature(kind).parameters.values()
        if each.default is inspect.Parameter.empty and each.kind is not each.VAR_POSITIONAL
    ]
    positional = [
        ARGUMENTS.get(each.name, NAME) for each in required if each.kind is not each.KEYWORD_ONLY
    ]
    named = {
        each.name: ARGUMENTS.get(each.name, NAME)
        for each in required
        if each.kind is each.KEYWORD_ONLY
    }
    error = kind(*(positional or [NAME]), **named)
    if kind in (InvalidPath, InvalidSelector):  # a text of the program's own, and a mark
        check(str(error).replace("\n", ""))
    else:
        check(str(error))
    assert str(error)


names = st.text(min_size=1).filter(lambda text: "/" not in text)


@given(names, names)
def test_the_text_of_a_key_is_printable_and_stands_for_no_other_key(
    namespace: str, name: str
) -> None:
    for key in (ObjectKey("", name), ObjectKey(namespace, name)):
        check(str(key))
        assert ObjectKey.parse(str(key)) == key


def test_the_text_of_a_usual_key_is_not_escaped() -> None:
    assert str(ObjectKey("web", "system:node é")) == "web/system:node é"
    assert str(ObjectKey("", NAME)) == (
        "a%0A2026-01-01 ERROR forged%0D%00%1B[31m%E2%80%A8%E2%80%AE%C2%85b"
    )


texts = st.one_of(st.text(), st.just(NAME * 500))
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(texts, st.none(), st.integers()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(texts, inner)),
    max_leaves=5,
)
causes: st.SearchStrategy[list[Any]] = st.lists(
    st.one_of(values, st.dictionaries(st.sampled_from(["message", "field", "reason"]), values)),
    max_size=9,
)


@given(
    st.integers(300, 599),
    texts,
    texts,
    st.one_of(st.dictionaries(texts, values), causes.map(lambda each: {"causes": each})),
    texts,
)
def test_the_text_of_a_server_s_error_is_one_printable_line_of_limited_length(
    code: int, reason: str, message: str, details: dict[str, Any], text: str
) -> None:
    body = msgspec.json.encode(
        {"kind": "Status", "reason": reason, "message": message, "details": details}
    )
    for status in (build_status(code, {}, body), Status(code, reason, message, details)):
        hint = hint_for_write_error(status, "/api/v1/namespaces/web/pods/a", "PUT")
        error = server_error(status, target=text, advice=hint)
        check(str(error), str(status))
        assert len(str(error)) <= 4010
