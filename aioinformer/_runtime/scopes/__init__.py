"""The reflectors of one informer: one, one for each of several namespaces, or one for its shards.

    namespaces informer ──▶ namespace_follower ──▶ scope_set ──▶ a reflector for each namespace
                                                                    └──▶ one DeltaQueue

    ShardGroup ──▶ group_reflectors ──▶ shard_reader (the shards that are held, in each scope)
                          └──▶ group_shards ──▶ shard_gate ──▶ controllers

scoped_source       where the reflectors of several namespaces get their sources from
reflector_builder   makes the reflectors of an informer from its options
reflectors          what an informer needs of its reflectors; the case of one reflector
scope_set           starts and stops a reflector for each namespace; their health as one
group_shards        the shards of a group that an informer reads, and its controllers
shard_gate          admits the keys of a controller on a group
gained_state        collects the state of shards that move in, which a cache file may have
shard_reader        reads the shards that a member of a group holds, in one scope: the tasks of
                    the requests that ``_core.sharding.shard_reads`` decides on
group_reflectors    follows the assignment of a group for the scopes of one informer
namespace_follower  adds and removes the namespaces that match a predicate
"""
