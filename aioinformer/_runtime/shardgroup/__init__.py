"""A group of replicas that share virtual shards: membership, and the shards of this replica.

Leases ──informer──▶ membership ──▶ subscriptions ──▶ informers and controllers on the group
  ▲                       │
  └── renewals, claims, assignments

    group          the public class
    membership     the tasks of a member, and the reaction to changes
    subscriptions  the shards of this member, for their users
    health         the public state of a member
"""
