"""A process of greedy clients, which list all widgets again and again without a pause.

Run as ``python -m tests.apiserver.programs.greedy_process URL CA_FILE CLIENTS``. The process ends
when its standard input is closed, and prints the numbers of its answers by status as JSON.
"""

import asyncio
import contextlib
import json
import ssl
import sys

import aiohttp

from tests.apiserver.server.admin import WIDGETS


async def list_for_ever(session: aiohttp.ClientSession, answers: dict[int, int]) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get(WIDGETS.path(None)) as response:
                await response.read()
                answers[response.status] = answers.get(response.status, 0) + 1


async def main(url: str, ca_file: str, clients: int) -> None:
    answers: dict[int, int] = {}
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca_file), limit=clients)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        tasks = [asyncio.create_task(list_for_ever(session, answers)) for _ in range(clients)]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    print(json.dumps(answers))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
