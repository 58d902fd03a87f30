"""The reflectors of one informer: one, or one for each of several namespaces.

    namespaces informer ──▶ namespace_follower ──▶ scope_set ──▶ a reflector for each namespace
                                                                    └──▶ one DeltaQueue

scoped_source       where the reflectors of several namespaces get their sources from
reflector_builder   makes the reflectors of an informer from its options
reflectors          what an informer needs of its reflectors; the case of one reflector
scope_set           starts and stops a reflector for each namespace; their health as one
namespace_follower  adds and removes the namespaces that match a predicate
"""
