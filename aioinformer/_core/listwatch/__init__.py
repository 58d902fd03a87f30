"""The list/watch state machine: the choice of the next request.

outcome of a request ──▶ state_machine ──transitions──▶ next request and the wait before it
"""
