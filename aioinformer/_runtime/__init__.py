"""The asyncio shell: tasks, waiting and waking around the core.

As the data flows::

    reflector     asks for pages and streams, feeds what comes into the queue
    delta_queue   the DeltaFIFO with somebody waiting at both ends
    pump          from the queue into the cache, and from there into every mailbox
    listeners     a mailbox, and somebody waiting at it
    registration  a listener that calls the program's code    streams   listeners to iterate
    calling       how: in order, by key, in time              handlers  what may be called
    resyncs       the state told again, in time               merging   several streams as one
    readings      what programs read of it, and wait for      awaiting  who is woken, and when
    live_lister   the cache, read bit by bit                  verifying it against the server
    informer      all of that for one resource                health    what it says of itself
    controllers   events -> keys -> runs of a reconciler (a package)
    elections     of several replicas, one acts (a package)
    writing       what all of them write with         retrying  once more after a conflict
    recording     events, told beside the work
    hosting       one informer for all who ask for the same   factory  its life

Beneath it: ``supervisor`` and ``crew`` own tasks, ``pace`` gives way, ``affinity`` knows the loop.
"""
