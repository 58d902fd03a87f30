"""The asyncio runtime: tasks, waiting and wake-ups around the core.

    Client ──▶ reflector ──▶ DeltaQueue ──▶ pump ──▶ cache
                                             ├──▶ listener ──▶ handler task ──▶ async handler
                                             └──▶ listener ──▶ EventStream  ──▶ async for

The stages are those of ``_core``. State changes in synchronous methods there; the runtime waits,
then changes state, with no ``await`` in between.
"""
