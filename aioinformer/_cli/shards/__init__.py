"""``aioinformer shards``: the members of a shard group, and the shards on which each works."""
