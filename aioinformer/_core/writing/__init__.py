"""Requests that write, and the Kubernetes Events that a program records.

write_requests   method, path, headers and body of each kind of write
event_objects    the body of a Kubernetes Event
event_series     aggregation of repeated Events, and their rate limit
"""
