"""Leader election on a Lease: the rules, without clock and requests.

Lease as read, time ──▶ election ──▶ read, write, wait, or lead
"""
