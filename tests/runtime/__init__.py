"""The asyncio shell: waiting, waking, ending, and what programs see of it."""
