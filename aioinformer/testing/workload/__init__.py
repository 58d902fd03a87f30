"""A workload for an embedded API server: the pods of a small web shop, which change all the time.

apps, rollouts ──▶ Cluster ◀── workload ◀── write_rate

``aioinformer demo``, ``aioinformer serve`` and the FastAPI example use it. Each write is
synchronous; the caller owns the loop::

    workload = PodWorkload(cluster, objects=100, seed=0)
    workload.populate(100)
    workload.step()  # one write
"""
