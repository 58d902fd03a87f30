"""The measurements of the library that ``python -m benchmarks`` runs beside the comparison.

caches     memory of an object, and the time of a lookup
callbacks  the longest callbacks of the event loop
curves     what grows with what
fanout     the cost of a further listener
imports    the time of the import
latency    from the server's socket to the handler
scale      large caches and many informers (``--scale``)
states     reading a whole state, first and again
"""
