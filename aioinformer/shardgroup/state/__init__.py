"""The rules of a group of replicas, without clock and requests.

Leases as seen, time ──▶ member ──▶ shards to begin with or to give away, Leases to write
                           ├── group_view   the members that are live, and their shards
                           └── planner      the members of the next assignment
"""
