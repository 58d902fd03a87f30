"""Write requests, and the Kubernetes Events that a program records.

record ──▶ event_series ──▶ event_objects ──▶ write_requests ──▶ a client's request

    write_requests   method, path, query and body of each kind of write, and its decoded answer
    event_objects    the body of a Kubernetes Event
    event_series     aggregation of repeated Events, and their rate limit
"""
