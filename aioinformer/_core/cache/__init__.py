"""Deltas to an indexed cache, and the reads from it.

deltas ──▶ delta_fifo ──▶ indexer ──▶ store + indexes ◀── lister ◀── query
                             └──▶ events

delta_fifo        deltas in order of arrival, with client-go's lookup by key
store             the objects and indexes of the cache
indexes           label indexes, and an index that is built while the cache is in use
memory            an estimate of the memory that a cache takes
comparison        two objects, compared by version and content
indexer           the only writer of the store; returns the events of a delta or relist
protocols         what a cache offers to an informer
lister            reads: ``get``, ``list``, ``by_index``
query             finds the cheapest index for a selector
"""
