"""The cache file: states of informers, and positions of listeners, that outlive the process.

    pump ──▶ checkpointer ──▶ file_access ──▶ database (SQLite, in a thread of its own)
    reflector ◀── checkpointer ◀──┘

``CacheFile`` is a name of ``aioinformer``.
"""
