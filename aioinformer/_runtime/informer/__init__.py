"""Queue to cache to listeners: the informer, and the factory of informers.

DeltaQueue ──▶ pump ──▶ Indexer
                 └──▶ every listener of subscriptions

informer_key    the identity under which callers share one informer
pump            pops a delta, applies it and distributes its events in one step
subscriptions   the listeners of an informer, and the resync timer
waiters         ``wait_for`` and ``wait_until``
live_lister     reads of the cache that yield to the loop
verifier        comparison of the cache with the server, once or periodically
informer        one resource: all of these parts
factory         one informer per resource, scope, selectors and shape; start and end of all
"""
