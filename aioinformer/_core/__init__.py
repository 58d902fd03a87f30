"""Hold all state of an informer in plain synchronous code, without I/O.

Nothing here imports asyncio, reads a clock, draws a random number or opens a socket. Time, bytes
and random numbers are arguments; the next action is a return value. Therefore every rule is tested
without an event loop, and a method without ``await`` is a critical section for the runtime.

    HTTP bytes ──codec──▶ deltas ──cache──▶ events ──delivery──▶ one listener
         ▲                                    │
     listwatch (the next request)         controllers (keys and retries)

    objects         cached objects, their identity, and deltas and events that carry them
    sharding        parts of a resource's objects by hash, and who works on which
    selectors       selectors, paths and predicates: the objects and fields that a program asks for
    codec           bytes of a list or watch to objects
    listwatch       the state machine that chooses the next list or watch request
    cache           DeltaFIFO, indexed store, lister, verification
    cachefile       the identities and the changes that a cache file holds
    delivery        the mailbox of one listener
    controllers     work queue, rate limits, reconcile results
    writing         bodies of write requests and of Kubernetes Events
    leaderelection  the rules by which replicas share a Lease
    shardgroup      the rules by which replicas divide shards among themselves
    instrumentation what metrics and tracing adapters receive
    chunked_list    long lists that no step walks as a whole
    segmented_dict  a large dict that grows in parts
    callables       checks of the functions that a program passes in
    arguments       checks of the other arguments: misspelt names, seconds
    quantities      numbers with their nouns, for texts
    missing_names   errors for attributes and keys that an object lacks, with what to write instead
"""
