"""A service with four worker processes and one watch: the workers share a cache file.

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
from pathlib import Path
from tempfile import gettempdir

import uvicorn
from fastapi import FastAPI

from aioinformer import CacheFile, Client, SharedInformer, SharedInformerFactory

# On a local disk, and the same path in all workers of this service. Not in the directory for
# temporary files itself, where any user could create the file first.
FOLDER = Path(os.environ.get("CACHE_FOLDER", Path(gettempdir()) / f"pods-{os.getuid()}"))
WORKERS = 4


def shared_cache() -> CacheFile:
    """Return the file of all workers, in a directory of this user."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    return CacheFile(FOLDER / "pods.db", shared=True)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Run the informers as long as a worker."""
    cache = shared_cache()
    async with Client.connect() as client, SharedInformerFactory(client, cache=cache) as kube:
        app.state.pods = kube.informer("pods")
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
    """Show which worker has answered, and if it watches or follows."""
    health = app.state.pods.health
    return {"pid": os.getpid(), "state": health.state, "leader": health.leader}


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run(
        "examples.hosts.uvicorn_workers:app",
        port=port,
        workers=WORKERS,
        access_log=False,
        timeout_worker_healthcheck=60,  # a worker that starts on a busy machine is not ended
    )
