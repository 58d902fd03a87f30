"""Groups of replicas that share virtual shards: the rules, without clock and requests.

Leases as seen, time ──▶ member ──▶ shards to begin with or to give away, Leases to write
                           ├── view      the members that are live, and the shards that they hold
                           └── planner   the members of the next assignment

    shard_sets   sets of shards as text
    rendezvous   the owner of each shard, from the members alone
    records      the content of the Leases: a member's record, and the assignment
    view         the Leases of a group as one member sees them
    planner      the elected member's decision to write a new assignment
    member       the state of one member: claims, and the writes of its Lease
"""
