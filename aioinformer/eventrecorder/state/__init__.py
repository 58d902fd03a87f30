"""The rules, without asyncio, clock and requests."""
