"""``aioinformer serve``: an API server on a loopback port, to try programs on.

manifests, workload ──▶ Cluster ──▶ ApiServer ◀── kubectl, aioinformer watch, your program
"""
