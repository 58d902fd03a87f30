"""Several namespaces in one cache, chosen by name, by pattern or by a predicate.

    namespaces informer ──▶ namespace_follower ──▶ scope_set ──▶ a reflector for each namespace
                                                                    └──▶ one DeltaQueue

``Scope`` is a name of ``aioinformer``.
"""
