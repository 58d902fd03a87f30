"""All state of an informer, in plain synchronous code without I/O.

Nothing here imports asyncio, reads a clock, draws a random number or opens a socket. Time, bytes
and random numbers are arguments; the next action is a return value. Therefore every rule is tested
without an event loop, and a method without ``await`` is a critical section for the runtime.

    HTTP bytes ──codec──▶ deltas ──cache──▶ events ──delivery──▶ one listener
         ▲
     listwatch (the next request)
"""
