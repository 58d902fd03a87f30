"""A service with four worker processes, each of which watches the pods and keeps them in its cache.

pip install 'aioinformer[fastapi]'
python examples/hosts/uvicorn_workers.py

    curl localhost:8000/pods
    curl localhost:8000/worker

The same on the command line of uvicorn:

    uvicorn examples.hosts.uvicorn_workers:app --workers 4
"""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from aioinformer import Client, SharedInformer, SharedInformerFactory

WORKERS = 4


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Run the informers of a worker, which begins after the fork."""
    async with Client.connect() as client, SharedInformerFactory(client) as kube:
        app.state.pods = kube.informer("pods", metadata_only=True)  # a fraction of the memory
        await app.state.pods.wait_synced(timeout=60)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/pods")
async def list_pods() -> dict[str, str]:
    """Show the version of each pod in this worker's cache."""
    pods: SharedInformer = app.state.pods
    return {str(pod.key): pod.resource_version for pod in pods.lister.list()}


@app.get("/worker")
async def show_worker() -> dict[str, object]:
    """Show which worker has answered, and the state of its informer."""
    return {"pid": os.getpid(), "state": app.state.pods.health.state}


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run(
        "examples.hosts.uvicorn_workers:app",
        port=port,
        workers=WORKERS,
        access_log=False,
        timeout_worker_healthcheck=60,  # a worker that starts on a busy machine is not ended
    )
