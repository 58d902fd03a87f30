"""A workload for an embedded API server: the pods of a small web shop, which change all the time.

apps, rollouts ──▶ Cluster ◀── workload ◀── write_rate

apps         the nodes, and the namespaces, Deployments and Services of the applications
pods         bodies of pods, and the steps of a pod's life
workload     ``PodWorkload``: writes that create, change and delete pods
rollouts     ``DeploymentRollouts``: the status of Deployments, as their controller reports it
write_rate   ``WriteRate``: as many writes a second as wanted

``aioinformer demo``, ``aioinformer serve`` and the FastAPI example use it. Each write is
synchronous; the caller owns the loop::

    workload = PodWorkload(cluster, objects=100, seed=0)
    workload.populate(100)
    workload.step()  # one write
"""
