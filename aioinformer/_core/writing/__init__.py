"""Write requests, and the contents that a program writes: Events, conditions, merge patches.

record ──▶ event_series ──▶ event_objects ──▶ write_requests ──▶ a client's request

    write_requests      method, path, query and body of each kind of write, and its decoded answer
    event_objects       the body of a Kubernetes Event
    event_series        aggregation of repeated Events, and their rate limit
    status_conditions   one entry of status.conditions, by apimachinery's rules
    merge_patches       the part of a merge patch that changes something
"""
