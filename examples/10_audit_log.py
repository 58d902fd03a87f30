"""Write a line for each pod that is created, changed or deleted, across restarts of this program.

python examples/10_audit_log.py [NAMESPACE]

The log is audit.log, the cache file audit.db, both in the current directory. A pod that is deleted
while the program is down gets its line when the program is back. The cache file advances only to
what the handler has returned from, so that no line is missing. After a crash the changes of the
last second come again; the handler knows their lines, and writes none twice.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from aioinformer import ALL_NAMESPACES, CacheFile, Client, Deleted, Event, SharedInformerFactory


async def main(log: TextIO, namespace: str = ALL_NAMESPACES) -> None:
    log.seek(0)
    written = set(log.read().splitlines())

    def audit(event: Event) -> None:
        pod = event.obj
        if isinstance(event, Deleted):  # a uid is deleted once, whatever its last version was
            line = f"- {pod.key} {pod.uid}"
        else:
            line = f"+ {pod.key} {pod.uid} {pod.resource_version}"
        if line not in written:
            written.add(line)
            log.write(f"{line}\n")

    async with (
        Client.connect() as client,
        SharedInformerFactory(client, cache=CacheFile("audit.db")) as informers,
    ):
        pods = informers.informer("pods", namespace=namespace, metadata_only=True)
        pods.add_handler(audit, durable="audit")
        await pods.wait_synced(timeout=30)
        print(f"{len(pods.lister)} pods", flush=True)
        await asyncio.Event().wait()  # until Ctrl-C


# With line buffering, the operating system has each line as soon as the line is complete.
with Path("audit.log").open("a+", buffering=1) as file, suppress(KeyboardInterrupt):
    asyncio.run(main(file, *sys.argv[1:2]))
