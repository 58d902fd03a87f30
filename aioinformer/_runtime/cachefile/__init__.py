"""The cache file: states that outlive the process, and that several processes may share.

    pump ──▶ checkpointer ──▶ file_access ──▶ database (SQLite, in a thread of its own)
    reflector ◀── checkpointer ◀──┘
    queue ◀── follower ◀── file_access    (shared files, in processes that don't lead)

cache_file     the options of a cache file, and its users in this process
file_access    the thread that reads and writes the file
database       the tables: what is stored, and the checks of a file that is opened
object_blocks  the table of objects: blocks of changes, which are appended
stored_scope   the stored state of a scope, and the writes that change it
stored_shards  the shards of a group in a file: restored, and written
checkpointer   one informer's states: restored at the start, recorded and written afterwards
checkpoint     a state that is to be written, and the cache from which it is taken
shared_tables  the further tables of a shared file: the log of changes for followers
leader_lock    the lock that makes one process the leader
leadership     the election, and the signal that the leader has written
follower       feeds a queue from the file, as a reflector does from a watch
"""
