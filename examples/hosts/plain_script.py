"""Print the number of pods in each phase whenever a number changes, as a plain script.

python examples/hosts/plain_script.py [NAMESPACE]

The script ends at Ctrl-C or SIGTERM, and with one line and status 1 if it can't start.
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
    # asyncio leaves every "async with" at Ctrl-C. SIGTERM, which stops a container, shall do the
    # same.
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)

    async with (
        Client.connect() as client,
        SharedInformerFactory(client, namespace=namespace) as informers,
    ):
        pods = informers.informer("pods", indexers={"phase": field("status.phase")})
        await informers.wait_synced(timeout=30)  # or SyncTimeout, which names the reason
        printed: Mapping[str, int] = {}
        async with pods.events() as events:
            async for _ in events:
                # The counts come from the cache, so merged events do no harm.
                counts = pods.lister.index_counts("phase")
                if counts != printed:
                    printed = counts
                    parts = (f"{count} {phase}" for phase, count in sorted(counts.items()))
                    print(f"{len(pods.lister)} pods: {', '.join(parts)}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)  # the informer's warnings
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(main(*sys.argv[1:2]))
    except (ConfigurationError, SyncTimeout) as error:
        sys.exit(str(error))
