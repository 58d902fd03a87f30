"""The cache file: states that outlive the process.

    pump ──▶ recorder ──▶ file_access ──▶ database (SQLite, in a thread of its own)
    reflector ◀── recorder ◀──┘

cache_file    the options of a cache file, and its users in this process
file_access   the thread that reads and writes the file
database      the tables: what is stored, and the checks of a file that is opened
stored_scope  the stored state of a scope, and the writes that change it
compression   zstd, if Python or an extra has it
recorder      one informer's states: restored at the start, recorded and written afterwards
"""
