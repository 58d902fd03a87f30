"""A plain script: prints how many pods are in which phase whenever that changes.

python examples/hosts/plain_script.py [NAMESPACE]

Ends with Ctrl-C or SIGTERM, as a container does; with one line and status 1 if it can't begin.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from aioinformer import Client, SharedInformerFactory, field
from aioinformer.errors import ConfigurationError, SyncTimeout


async def main(namespace: str | None = None) -> None:
    # Ctrl-C ends it in good order by itself; what stops a container is to do the same.
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)

    async with (
        Client.connect() as client,
        SharedInformerFactory(client, namespace=namespace) as informers,
    ):
        pods = informers.informer("pods", indexers={"phase": field("status.phase")})
        await informers.wait_synced(timeout=30)  # or SyncTimeout, which says why
        told: Mapping[str, int] = {}
        async with pods.events() as events:
            async for _ in events:
                # What there is now, from the cache: never mind how many events led there.
                counts = pods.lister.index_counts("phase")
                if counts != told:
                    told = counts
                    shown = (f"{count} {phase}" for phase, count in sorted(counts.items()))
                    print(f"{len(pods.lister)} pods: {', '.join(shown)}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)  # what the informer says when something is wrong
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(main(*sys.argv[1:2]))
    except (ConfigurationError, SyncTimeout) as error:
        sys.exit(str(error))
