"""The sans-I/O core: no asyncio, no clock, no randomness, no sockets.

Every module here is plain synchronous state. Time comes in as an argument, bytes come in as
arguments, and what should be done next comes out as a value. That is why all of it can be tested
without an event loop, and why a method without ``await`` is a critical section for the shell.

    resources    what a URL names              selectors    which objects are meant
    objects      what is cached and told       readonly     views that nobody can write to
    wire         a watch's bytes -> deltas     list_wire    a list's bytes -> objects
    bodies       one object's bytes            statuses     a server's Status
    shapes       what is kept of an object     transforming a program's change of it, before
    views        what programs see of it       items        what is kept instead of it
    comparing    whether it is news            keys         which object
    cursor       outcome -> next request       outcomes     error -> outcome
    rates        how often all together may ask   metrics   who is told, for numbers
    backoff      how long to wait              deltas       what travels to the cache
    delta_fifo   what arrived, in order        store        the cache's data
    indexer      writes the cache              lister       reads it
    query        what a reader means, found    label_index  found by label
    index_building  an index that comes late   verification the cache against the server
    versions     which of two is older
    mailbox      what one listener has yet to hear          overflow   when it is too much
    coalescing   the same, merged by key       retelling    a state told: at first, in a resync
    paths        names of an object's parts    projections  read a few of them, fast
    predicates   which objects and changes     filtering    what one listener is told
    lanes        keys that are dealt with at once
    writes       what a write sends, and its answer
    event_bodies what a controller tells         aggregation  how often it is told
    signatures   what a program's function takes
    work         keys to be worked on: queue, limits, reasons (a package)
    elections    who leads (a package)
"""
