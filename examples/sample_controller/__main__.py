"""One command: ``python -m examples.sample_controller``."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import suppress

from aioinformer import Client
from examples.sample_controller.replica import Replica
from examples.sample_controller.settings import Settings


async def main(settings: Settings) -> None:
    """Run a replica until SIGTERM or Ctrl-C."""
    async with Client.connect(kubeconfig=settings.kubeconfig) as client:
        replica = Replica(client, settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, replica.stop)
        with suppress(asyncio.CancelledError):
            await replica.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    asyncio.run(main(Settings.parse()))
