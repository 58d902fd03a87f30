"""The cache file: states that outlive the process.

    pump ──▶ checkpointer ──▶ file_access ──▶ database (SQLite, in a thread of its own)
    reflector ◀── checkpointer ◀──┘

cache_file     the options of a cache file, and its users in this process
file_access    the thread that reads and writes the file
database       the tables: what is stored, and the checks of a file that is opened
object_blocks  the table of objects: blocks of changes, which are appended
stored_scope   the stored state of a scope, and the writes that change it
stored_shards  the shards of a group in a file: restored, and written
checkpointer   one informer's states: restored at the start, recorded and written afterwards
checkpoint     a state that is to be written
durable_listeners  the listeners of an informer that have a position in the file
"""
