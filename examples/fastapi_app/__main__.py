"""The command ``python -m examples.fastapi_app``."""

from __future__ import annotations

import argparse
from dataclasses import replace

import uvicorn

from examples.fastapi_app.app import create_app
from examples.fastapi_app.settings import Settings

PORT = 8000

SHUTDOWN_SECONDS = 3
"""Seconds for which the shutdown waits for clients that have stopped reading."""


def main() -> None:
    """Serve until Ctrl-C."""
    settings = Settings.from_environment()
    parser = argparse.ArgumentParser(
        prog="python -m examples.fastapi_app",
        description="Shows a cluster live: an embedded one, or that of $KUBECONFIG.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--embedded", action="store_true", help="an embedded cluster, also with $KUBECONFIG"
    )
    which.add_argument("--cluster", action="store_true", help="kubectl's current cluster")
    which.add_argument("--kubeconfig", metavar="FILE", help="the cluster of this file")
    parser.add_argument("-n", "--namespace", help="the only namespace to show")
    parser.add_argument("--resources", help="resources to show, such as pods,nodes,secrets")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; there is no login"
    )
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--objects", type=int, default=settings.objects, help="embedded pods")
    parser.add_argument("--rate", type=float, default=settings.rate, help="embedded writes/s")
    given = parser.parse_args()
    settings = replace(
        settings,
        cluster=bool(given.cluster or given.kubeconfig or settings.cluster) and not given.embedded,
        kubeconfig=given.kubeconfig,
        namespace=given.namespace or settings.namespace,
        resources=tuple(given.resources.split(",")) if given.resources else settings.resources,
        hosts=(*settings.hosts, given.host),
        objects=given.objects,
        rate=given.rate,
    )
    uvicorn.run(
        create_app(settings),
        host=given.host,
        port=given.port,
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


if __name__ == "__main__":
    main()
