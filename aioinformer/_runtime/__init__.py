"""The asyncio runtime: tasks, waiting and wake-ups around the core.

    Client ──▶ reflector ──▶ DeltaQueue ──▶ pump ──▶ cache
                                             ├──▶ listener ──▶ handler task ──▶ async handler
                                             └──▶ listener ──▶ EventStream  ──▶ async for

    tasks            one event loop, time slices, supervised task groups
    reporting        health, logs, the error hook, metrics and tracing that can't break an informer
    reflector        list and watch requests, one after the other, into the queue
    reading          lists and watches of a program of its own, without an informer
    delivery         listeners: registrations of handlers, and event streams
    scopes           the reflectors of one informer: one, or one for each namespace; shards
    informer         queue to cache to listeners; the informer and the factory of informers
    cachefile        states that outlive the process: restored at the start, written behind
    controllers      events to keys to reconciles
    writing          writes, retries after conflicts, Kubernetes Events
    leaderelection   one active replica of several
    shardgroup       several active replicas, each on its own shards

The stages are those of ``_core``. State changes in synchronous methods there; the runtime waits,
then changes state, with no ``await`` in between.
"""
