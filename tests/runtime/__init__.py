"""The heart in asyncio: waiting, waking, ending, and what programs see of it."""
