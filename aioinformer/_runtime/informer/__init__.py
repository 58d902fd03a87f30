"""Queue to cache to listeners: the informer, and the factory of informers.

DeltaQueue ──▶ pump ──▶ Indexer
                 └──▶ every listener of listener_registry

options         the options of an informer, and the keywords that callers write
informer_key    the key under which callers share one informer
pump            pops a delta, applies it and distributes its events in one step
resync_timer    when each listener gets the cached state again
listener_registry   the listeners of an informer: handlers and streams
waiters         tasks that wait for a state of the cache
cache_reader    ``wait_for`` and ``wait_until``, with timeouts and checks of the caller
verifier        comparison of the cache with the server, once or periodically
status          health and gauges
pipeline        all of these parts, connected and run
informer        one resource: the public side of a pipeline
factory         one informer per resource, scope, selectors and shape; start and end of all
"""
