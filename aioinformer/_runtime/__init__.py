"""The asyncio runtime: tasks, waiting and wake-ups around the core.

    Client ──▶ reflector ──▶ DeltaQueue ──▶ pump ──▶ cache
                                             ├──▶ listener ──▶ handler task ──▶ async handler
                                             └──▶ listener ──▶ EventStream  ──▶ async for

The stages are those of ``_core``, whose synchronous methods change the state. The runtime first
waits, then calls them, with no ``await`` in between.
"""
