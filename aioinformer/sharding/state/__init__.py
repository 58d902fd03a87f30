"""Shards: parts of a resource's objects, by the hash of a metadata field.

    Shard(0, 4)  ──▶  HashRanges  ──▶  the server's shardSelector
                           └────────▶  the check of each object, where the server has no selectors

hashing      the server's hash of a field's value
ranges       the hashes of one or several shards, and their selector text
shard        one of several equal shards, as a program names it
shard_filter the check of received objects
shard_reads  the requests that read the shards of a member, as they come and go
assignment   the interface between a group of replicas and its informers and controllers. A group
             finds an object's shard by ``ranges.shard_of``, a static shard by ``shard_filter``
"""
