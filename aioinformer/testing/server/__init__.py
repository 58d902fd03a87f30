"""A cluster behind HTTP on a loopback port, or in the place of a client.

socket ──▶ server ──▶ request_router ──▶ queries, objects ──▶ Cluster
informer ──▶ source ──▶ queries, objects ──▶ Cluster (no sockets)
"""
