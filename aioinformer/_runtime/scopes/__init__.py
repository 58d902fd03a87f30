"""The reflectors of one informer: one, one for each of several namespaces, or one for its shards.

    namespaces informer ──▶ namespace_follower ──▶ scope_set ──▶ a reflector for each namespace
                                                                    └──▶ one DeltaQueue

    ShardGroup ──▶ group_shards ──▶ group_reflector (a reflector for all shards that are held)
                        └──▶ shard_gate ──▶ controllers

scoped_source       where the reflectors of several namespaces get their sources from
reflector_builder   makes the reflectors of an informer from its options
reflectors          what an informer needs of its reflectors; the case of one reflector
scope_set           starts and stops a reflector for each namespace; their health as one
group_shards        the shards of a group that an informer reads, and its controllers
shard_gate          admits the keys of a controller on a group
group_reflector     reads the shards that a member of a group holds
namespace_follower  adds and removes the namespaces that match a predicate
"""
