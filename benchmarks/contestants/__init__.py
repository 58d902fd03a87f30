"""The contestants of the comparison: the library, the floor, and the peers.

    ours, floor, clientgo and kube_rs (by compiled), the clients of ``benchmarks.peers``
        ──contestant──▶ one ``Sample`` of CPU time, wall time and memory

Each measurement of a contestant has a new load server and a new process.
"""
