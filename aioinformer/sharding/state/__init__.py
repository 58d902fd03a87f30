"""Shards: parts of a resource's objects, by the hash of a metadata field.

Shard(0, 4)  ──▶  HashRanges  ──▶  the server's shardSelector
                       └────────▶  the check of each object, where the server has no selectors
"""
