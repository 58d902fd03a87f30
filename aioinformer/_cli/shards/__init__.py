"""``aioinformer shards``: the members of a shard group, and the shards on which each works.

command   the command
report    the state of a group, from its Leases
"""
