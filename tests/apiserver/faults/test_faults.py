"""Faults of the server, the network and the machine, with a real API server: one row each.

``ROWS`` is the table. A row says which fault happens, what the log must contain, and the seconds
after which the cache and the handler must show the server's state again. The one test of this
module runs each row: it also checks that the handler missed nothing, that no object was added
twice, and that the informer leaves no task and no socket behind.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.apiserver.faults.fault_harness import (
    FaultHarness,
    run_informer_process,
    write_kubeconfig,
)
from tests.apiserver.server.admin import wait_until
from tests.apiserver.server.server_process import WIDGETS, AdminClient, ApiError, ApiServerProcess
from tests.apiserver.server.tcp_proxy import (
    CorruptGzip,
    Drip,
    HalfOpen,
    PassOn,
    ResetAfter,
    run_proxy,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

HOST = "kube.test"
"""A name that only the files of a test resolve."""
HOUR = 3600

Fault = Callable[[FaultHarness], Awaitable[None]]


async def kill_the_server(harness: FaultHarness) -> None:
    """Kill the server with SIGKILL, and start it after three seconds with the same data."""
    await harness.server.kill()
    await asyncio.sleep(3.0)
    await harness.server.start()
    await harness.write()


async def stop_the_server(harness: FaultHarness) -> None:
    """Stop the server with SIGSTOP until the informer notices; the kernel keeps connections."""
    harness.server.pause()
    try:
        await harness.informer.wait_for_cause("idle_timeout")
    finally:
        harness.server.resume()
    await harness.write()


async def lose_the_peer(harness: FaultHarness) -> None:
    """Let the connection carry nothing any more, without closing it, while the server goes on."""
    harness.connection.affect_connections(HalfOpen())
    await harness.write()
    await harness.informer.wait_for_cause("idle_timeout")


async def drip(harness: FaultHarness) -> None:
    """Send a hundred bytes each few milliseconds, which end in the middle of lines and chunks."""
    harness.connection.affect_connections(Drip(100, 0.005))
    await harness.write()


async def reset_inside_a_chunk(harness: FaultHarness) -> None:
    """Reset the connection after a part of the next events, in the middle of a chunk."""
    harness.connection.affect_connections(ResetAfter(2500))
    await harness.write()


async def corrupt_gzip(harness: FaultHarness) -> None:
    """Check that the proxy has damaged the first two lists, and write."""
    effect = harness.connection.effect
    assert isinstance(effect, CorruptGzip)
    assert effect.damaged == effect.times
    await harness.write()


async def compact(harness: FaultHarness) -> None:
    """Compact etcd past the informer's version, and restart the server, while the informer waits.

    The history of watches is in the API server's watch cache and in etcd. The restart empties the
    first, the compaction the second. A request of exactly the old version proves the compaction.
    """
    async with AdminClient(harness.server) as admin:
        old = (await admin.list("web", limit="1"))["metadata"]["resourceVersion"]
        harness.connection.refuse()
        await harness.write()

        async def is_compacted() -> bool:
            query = {"resourceVersion": old, "resourceVersionMatch": "Exact"}
            try:
                await admin.list("web", **query)
            except ApiError as error:
                return error.status == 410
            await harness.write(1)
            return False

        async with asyncio.timeout(30):
            await wait_until(is_compacted)
    await harness.server.restart()
    await harness.write()
    harness.connection.accept()


async def rotate_the_certificate(harness: FaultHarness) -> None:
    """Replace the server's certificate and its authority during a watch, and the kubeconfig."""
    authority, data = trustme.CA(), harness.server.data_dir
    leaf = authority.issue_cert("127.0.0.1", "localhost")
    for file, content in (
        (data / "apiserver.key", leaf.private_key_pem.bytes()),
        (data / "apiserver.crt", b"".join(each.bytes() for each in leaf.cert_chain_pems)),
        (harness.server.ca_file, authority.cert_pem.bytes()),
    ):
        temporary = file.with_suffix(".new")
        temporary.write_bytes(content)
        temporary.replace(file)
    async with asyncio.timeout(30):
        await wait_until(lambda: is_trusted(harness.server))
    await harness.write()
    await harness.wait_until_fresh(5)  # the watch goes on
    write_kubeconfig(
        harness.folder / "kubeconfig", harness.connection.url, authority.cert_pem.bytes()
    )
    harness.connection.reset_connections()
    await harness.write()


async def is_trusted(server: ApiServerProcess) -> bool:
    """Return True if the server has a certificate of the authority in its file."""
    async with AdminClient(server) as admin:
        return await admin.succeeds(WIDGETS.path("web"))


async def rotate_the_token(harness: FaultHarness) -> None:
    """Replace the token in its file during a watch; the server rejects the old token now."""
    write_roles(harness.folder, "token-2")
    (harness.folder / "token").write_text("token-2")
    await harness.write()
    await harness.wait_until_fresh(5)  # the watch goes on
    harness.connection.reset_connections()
    await harness.write()


async def exhaust_descriptors(harness: FaultHarness) -> None:
    """Leave no descriptor for a new connection, and reset the old one."""
    await harness.informer.ask("exhaust")
    harness.connection.reset_connections()
    await harness.informer.wait_for_cause("unreachable")
    await harness.informer.ask("restore")
    await harness.write()


async def resolve_nothing(harness: FaultHarness) -> None:
    """Let the system's resolver find no address until the informer has reported this."""
    await harness.informer.wait_for_cause("unreachable")
    write_hosts(harness.folder, f"127.0.0.1 {HOST}\n")


async def break_dns(harness: FaultHarness) -> None:
    """Break a connection while the resolver fails; the client keeps addresses for ten seconds."""
    write_hosts(harness.folder, "")
    harness.connection.reset_connections()
    await harness.write()
    write_hosts(harness.folder, f"127.0.0.1 {HOST}\n")


def write_hosts(folder: Path, text: str) -> None:
    """Write the resolver's file: the same file each time, since a mount leads to it."""
    (folder / "hosts").write_text(text)


async def step_the_clock(harness: FaultHarness) -> None:
    """Step the wall clock of the informer's process an hour forward, two back, two forward."""
    for offset in (HOUR, -HOUR):
        step_to(harness.folder, offset)
        await harness.write()
        await harness.wait_until_fresh(5)  # by the watch, which goes on
    step_to(harness.folder, HOUR)
    harness.connection.reset_connections()
    await harness.write()


def step_to(folder: Path, offset: int) -> None:
    """Set the offset of the faked clock."""
    temporary = folder / "clock.new"
    temporary.write_text(f"{offset:+d}\n")
    temporary.replace(folder / "clock")


def write_roles(folder: Path, token: str) -> Path:
    """Write the users of the server: one, with all rights on widgets and this token."""
    rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list", "watch"]}
    account = {"token": token, "user": "reader", "roles": [{"namespace": "", "rules": [rule]}]}
    file = folder / "roles.json"
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps([account]))
    return temporary.replace(file)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault, and what is expected of the informer."""

    fault: Fault
    at_start: Fault | None = None
    """A fault that the informer meets before its first list; this function ends the fault."""
    within: float
    """Seconds after the end of the fault, until the cache and the handler show the server's state.
    The bounds are for a busy machine: a wait after a failure lasts 0.8 to 1.6 s the first time."""
    log: Sequence[str] = ()
    """Regular expressions that the log must contain."""
    reconnects: bool = True
    """False if the fault must not end the watch."""
    proxy: str = "http"
    """``http`` for a proxy that sees HTTP, ``tcp`` for one that forwards TLS, or empty for none."""
    options: tuple[str, ...] = ()
    """Of the informer's process."""
    server: tuple[str, ...] = ()
    """Of the server's process."""
    effect: Callable[[], CorruptGzip | PassOn] = PassOn
    """Of the proxy, from the informer's first request on."""
    token: bool = False
    """True for a server that checks tokens."""
    hosts: bool = False
    """True to name the server by ``HOST``, in a mount namespace with files of the test."""
    clock: bool = False
    """True for a process whose clock the test steps."""


QUICK_BOOKMARKS = ("--bookmark-interval", "12")
"""The idle timeout is 15 s then, instead of 75 s."""

ROWS: Mapping[str, Row] = {
    "kill -9": Row(fault=kill_the_server, within=10, proxy="", log=["ConnectionFailed"]),
    "SIGSTOP": Row(
        fault=stop_the_server, within=10, proxy="", options=QUICK_BOOKMARKS, log=["idle timeout"]
    ),
    "half-open connection": Row(
        fault=lose_the_peer, within=5, options=QUICK_BOOKMARKS, log=["idle timeout"]
    ),
    "slow bytes": Row(fault=drip, within=15, reconnects=False),
    "reset inside a chunk": Row(fault=reset_inside_a_chunk, within=6, log=["ConnectionLost"]),
    "corrupt gzip": Row(
        fault=corrupt_gzip,
        within=5,
        options=("--list",),
        effect=lambda: CorruptGzip(2),
        # The damage may make other JSON before the decompression notices it.
        log=["gzip|decompress|compress|malformed"],
    ),
    "etcd compaction": Row(
        fault=compact,
        # On a busy machine, the waits between attempts grow until the server is back: the next one
        # may take twice the greatest delay of BackoffPolicy.
        within=70,
        server=("--etcd-compaction-interval=1s",),
        log=["Expired"],
    ),
    "certificate rotated": Row(fault=rotate_the_certificate, within=10, proxy="tcp"),
    "token rotated": Row(fault=rotate_the_token, within=10, token=True),
    "descriptors exhausted": Row(
        fault=exhaust_descriptors, within=10, log=["Too many open files|descriptor"]
    ),
    "DNS failure": Row(
        at_start=resolve_nothing, fault=break_dns, within=10, hosts=True, log=["resol|name"]
    ),
    "clock stepped by an hour": Row(fault=step_the_clock, within=6, clock=True),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_the_cache_and_the_handler_recover_from(
    row: Row, apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path
) -> None:
    async with running_harness(row, apiserver_binary, data_with_widgets, tmp_path) as harness:
        if row.at_start is not None:
            await row.at_start(harness)
        await harness.wait_until_fresh(30)
        await harness.write()
        await harness.wait_until_fresh(10)
        before = await harness.informer.state()
        await row.fault(harness)
        seconds = await harness.wait_until_fresh(row.within)
        state = await harness.informer.state()
        left = await harness.informer.leave()
        log = harness.informer.log
    print(f"recovered in {seconds:.1f} s\n{log}")  # noqa: T201 - shown for a failed row
    assert (state["wrong"], state["added twice"], state["handler errors"]) == ("", [], 0)
    assert left == {"tasks": 0, "sockets": 0}
    for pattern in row.log:
        assert re.search(pattern, log), f"{pattern!r} is not in the log"
    for unwanted in ("Traceback", "ERROR", "token-1", "token-2", "never retrieved"):
        assert unwanted not in log
    if not row.reconnects:
        assert state["causes"] == before["causes"]


@asynccontextmanager
async def running_harness(
    row: Row, binary: Path, data_with_widgets: Path, folder: Path
) -> AsyncGenerator[FaultHarness]:
    """Run the server, the proxy and the informer's process of a row."""
    data = folder / "apiserver"
    shutil.copytree(data_with_widgets, data, ignore=shutil.ignore_patterns("*.log"))
    arguments = row.server
    if row.token:
        arguments += ("--roles", str(write_roles(folder, "token-1")))
        (folder / "token").write_text("token-1")
    server = ApiServerProcess(binary, data, *arguments)
    await server.start()
    harness = FaultHarness(server, folder)
    try:
        await harness.populate()
        async with AsyncExitStack() as stack:
            authority = await enter_proxy(row, harness, stack)
            wrapper, environment = make_surroundings(row, harness, authority)
            harness.running = await stack.enter_async_context(
                run_informer_process(
                    folder,
                    folder / "kubeconfig",
                    *row.options,
                    wrapper=wrapper,
                    environment=environment,
                )
            )
            yield harness
    finally:
        await server.kill()
        shutil.rmtree(data / "etcd")


async def enter_proxy(row: Row, harness: FaultHarness, stack: AsyncExitStack) -> bytes:
    """Run the proxy of a row. Return the certificate of the authority that a client trusts."""
    ca_file = harness.server.ca_file
    if not row.proxy:
        return ca_file.read_bytes()
    if row.proxy == "tcp":
        harness.proxy = await stack.enter_async_context(run_proxy(harness.server.url))
        return ca_file.read_bytes()
    authority = trustme.CA()
    proxy = run_proxy(
        harness.server.url,
        authority=authority,
        upstream=ssl.create_default_context(cafile=ca_file),
    )
    harness.proxy = await stack.enter_async_context(proxy)
    harness.proxy.effect = row.effect()
    return authority.cert_pem.bytes()


def make_surroundings(
    row: Row, harness: FaultHarness, authority: bytes
) -> tuple[Sequence[str], dict[str, str]]:
    """Write the files of the informer's process; return its wrapper and its environment."""
    folder, environment = harness.folder, dict(os.environ)
    url = harness.proxy.url if harness.proxy else harness.server.url
    wrapper: Sequence[str] = ()
    if row.hosts:
        url = url.replace("127.0.0.1", HOST)
        wrapper = isolate_resolver(folder)
    if row.clock:
        step_to(folder, 0)
        environment |= {
            "LD_PRELOAD": find_libfaketime(),
            "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    write_kubeconfig(
        folder / "kubeconfig",
        url,
        authority,
        token_file=folder / "token" if row.token else None,
        name="127.0.0.1" if row.hosts else "",
    )
    return wrapper, environment


def isolate_resolver(folder: Path) -> Sequence[str]:
    """Return a wrapper: a mount namespace in which the resolver reads files of this test.

    ``/etc/hosts`` holds the server's address, and is empty at first. The name server is on the
    loopback, where none answers, so that a name that is missing in the file is not found.
    """
    write_hosts(folder, "")
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    mounts = " && ".join(f"mount --bind {folder / name} /etc/{name}" for name in FILES)
    script = f'{mounts} && exec "$@"'
    return ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")


FILES = ("hosts", "resolv.conf")


def find_libfaketime() -> str:
    """Return the path of the library that fakes a process's clock."""
    found = importlib.util.find_spec("libfaketime")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "vendor/libfaketime/src/libfaketime.so.1")
