"""A real API server for custom resources, and the tests that run against it.

- ``server``: its sources in Go, its build and its process;
- ``programs``: programs that a test kills or stops;
- ``fidelity``: the embedded server beside the real one;
- ``informers``, ``controllers``, ``shards``, ``faults``: the library on the real server.
"""
