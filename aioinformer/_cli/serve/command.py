"""``aioinformer serve``: run the embedded API server until the process receives a signal.

The objects come from manifests, and from the workload of ``aioinformer demo``, which changes its
pods all the time. The status of a changed Deployment reports a rollout, though no pod changes with
it.
"""

from __future__ import annotations

import asyncio
import errno
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import randbits, token_urlsafe
from typing import Any

from aioinformer._cli.options import ServeCommandOptions
from aioinformer._cli.terminal.command_process import Terminal
from aioinformer._core.quantities import quantity
from aioinformer.errors import UsageError
from aioinformer.testing import ApiServer, Cluster, Features
from aioinformer.testing.manifests import load_manifests
from aioinformer.testing.workload.apps import create_apps
from aioinformer.testing.workload.rollouts import DeploymentRollouts
from aioinformer.testing.workload.workload import PodWorkload
from aioinformer.testing.workload.write_rate import WriteRate

POPULATE_BATCH = 100
"""Pods created at the start before the command yields to the loop: about 10 ms of work."""
TICK_SECONDS = 0.02
"""Seconds between two rounds of writes."""
ROLLOUT_SECONDS = 0.5
"""Seconds between two steps of the rollouts of Deployments, which take five steps."""


async def run_serve(options: ServeCommandOptions, terminal: Terminal) -> int:
    """Serve until the task is cancelled.

    Raises:
        UsageError: the port is taken, a manifest can't be created, a feature is unknown, an
            accepted host is none, or the kubeconfig can't be written.
    """
    cluster = Cluster(
        seed=randbits(32),  # another cluster than before: cache files distinguish clusters by uids
        clock=lambda: datetime.now(UTC),
        features=make_features(options.features),
        # The first version is above all versions of a command that ran before at this port with up
        # to 1,000 writes a second. So programs that are still running read this cluster instead of
        # keeping the other one.
        start=time.time_ns() // 1_000_000,
    )
    # In a thread: large files take seconds, in which Ctrl-C shall end the command.
    loaded = await asyncio.to_thread(load_manifests, cluster, *options.load)
    workload = await _populate(cluster, options)
    server = _make_server(cluster, options)
    try:
        await server.start()
    except OSError as error:
        raise UsageError(_explain_port(options.port, error)) from error
    try:
        with _kubeconfig(server, options.kubeconfig) as kubeconfig:
            await terminal.output.write(_describe(server, kubeconfig, options, loaded))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_roll_out(cluster))
                await _make_writes(workload, options.rate)
    finally:
        await server.stop()
    return 0


def make_features(given: tuple[tuple[str, int | bool], ...]) -> Features:
    """Return the features; raise ``UsageError`` for an unknown name or a wrong type."""
    defaults = Features()
    known: dict[str, object] = {
        each.name: getattr(defaults, each.name) for each in fields(defaults)
    }
    for name, value in given:
        if name not in known:
            raise UsageError(f"--features: unknown feature {name!r}; known: {', '.join(known)}")
        if isinstance(value, bool) is not isinstance(known[name], bool):
            wanted = "true or false" if isinstance(known[name], bool) else "a number"
            raise UsageError(f"--features: {name} must be {wanted}, not {str(value).lower()}")
    return replace(defaults, **dict[str, Any](given))


def _make_server(cluster: Cluster, options: ServeCommandOptions) -> ApiServer:
    token = token_urlsafe() if options.token else None
    hosts = options.accept_hosts
    try:
        return ApiServer(cluster, port=options.port, token=token, accept_hosts=hosts)
    except ValueError as error:
        raise UsageError(str(error).replace("accept_hosts", "--accept-hosts", 1)) from error


async def _populate(cluster: Cluster, options: ServeCommandOptions) -> PodWorkload | None:
    if not options.objects:
        return None
    create_apps(cluster, options.objects)
    workload = PodWorkload(cluster, objects=options.objects, seed=options.seed)
    populated = False
    while not populated:
        populated = workload.populate(POPULATE_BATCH)
        await asyncio.sleep(0)  # handle Ctrl-C, also with a large number of pods
    return workload


async def _make_writes(workload: PodWorkload | None, rate: float) -> None:
    """Change the pods at the rate; without pods or a rate, wait. Ends by cancellation."""
    if workload is None or not rate:
        await asyncio.Event().wait()
        return
    clock = asyncio.get_running_loop().time
    writes = WriteRate(workload, rate, clock())
    while True:
        await asyncio.sleep(TICK_SECONDS)
        writes.make_due(clock())


async def _roll_out(cluster: Cluster) -> None:
    """Report the rollouts of Deployments, as a controller would do. Ends by cancellation."""
    rollouts = DeploymentRollouts(cluster)
    while True:
        await asyncio.sleep(ROLLOUT_SECONDS)
        rollouts.step()


def _explain_port(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"--port {port}: the port is in use; stop its server, or let --port 0 find a free one"
        )
    return f"--port {port}: {error.strerror or error}"


# -- what to export ----------------------------------------------------------------------------


@contextmanager
def _kubeconfig(server: ApiServer, chosen: Path | None) -> Generator[Path]:
    """Write the kubeconfig; delete it at the end if its place was not chosen by the user."""
    if chosen is not None:
        yield _write_kubeconfig(server, chosen)
        return
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
        yield _write_kubeconfig(server, Path(folder) / "kubeconfig")


def _write_kubeconfig(server: ApiServer, path: Path) -> Path:
    try:
        return server.kubeconfig(path.absolute())
    except OSError as error:
        raise UsageError(f"--kubeconfig {path}: {error.strerror or error}") from error


def _describe(
    server: ApiServer, kubeconfig: Path, options: ServeCommandOptions, loaded: int
) -> str:
    contents = [f"Kubernetes 1.{server.cluster.features.minor}"]
    if loaded:
        contents.append(f"{quantity(loaded, 'object')} from manifests")
    if options.objects:
        contents.append(
            f"about {quantity(options.objects, 'pod')}, "
            f"{options.rate:g} change{'s' * (options.rate != 1)} a second"
        )
    kubectl = "  kubectl get pods -A --watch\n"
    if options.token:
        kubectl = "\nkubectl gets 401 from this server: it sends no token over http\n"
    return (
        f"serving at {server.url} ({'; '.join(contents)})\n"
        "\n"
        "in another terminal:\n"
        f"  export KUBECONFIG={kubeconfig}\n"
        "  aioinformer watch pods -A\n"
        f"{kubectl}"
        "\n"
        "everything is in memory; Ctrl-C ends the server\n"
    )
