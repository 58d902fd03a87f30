"""Writes to the API server that don't depend on an HTTP library.

resource_writer   the protocol of create, update, patch, apply and delete
retry             repeat a read-modify-write after a conflict
event_recorder    Kubernetes Events, recorded in the background
"""
