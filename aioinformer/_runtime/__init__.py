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
    work_queue    keys that workers wait for                 turns     whose turn it is
    controller    informers trigger keys, workers reconcile   controller_health  what it says
    triggers      events -> keys                              workers  keys -> runs, and after
    reconciles    one run, to its end                         setbacks  what went wrong, told
    shifts        the life of all that
    election      of several replicas, one acts               leadership  one term of it
    campaign      its requests                                eviction  how a body is made to end
    stepping      a coroutine that asks before each step      guarding  a writer that does
    elapsed       a clock that goes on in a machine's sleep   standing  what an election says
    writing       what all of them write with         retrying  once more after a conflict
    recording     events, told beside the work
    hosting       one informer for all who ask for the same   factory  its life

Beneath it: ``supervisor`` and ``crew`` own tasks, ``pace`` gives way, ``affinity`` knows the loop.
"""
