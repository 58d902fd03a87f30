"""Leader election on a Lease: the rules, without clock and requests.

Lease as read, time ──▶ election ──▶ read, write, wait, or lead

    election   the state of one candidate, and its next action
    lease      the record in a Lease's spec, and fencing tokens
"""
