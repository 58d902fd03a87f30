"""The sans-I/O core: no asyncio, no clock, no randomness, no sockets.

Every module here is plain synchronous state. Time comes in as an argument, bytes come in as
arguments, and what should be done next comes out as a value. That is why all of it can be tested
without an event loop, and why a method without ``await`` is a critical section for the shell.

    resources    what a URL names          selectors     which objects are meant
    objects      what is cached            backoff       how long to wait
    wire         bytes -> objects          cursor        outcome -> next request
    delta_fifo   what arrived, in order    indexer       the cache and its readers
    mailbox      what one listener has yet to hear
"""
