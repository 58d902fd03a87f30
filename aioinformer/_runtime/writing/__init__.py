"""Writes to the API server, independent of the HTTP library.

resource_writer ──▶ retry (repeats a change), event_recorder (writes Kubernetes Events)

    resource_writer     the protocol of create, update, patch, apply and delete
    retry               repetition of a read-change-write cycle after a conflict
    event_recorder      Kubernetes Events, recorded in the background
    recorded_writer     a writer that reports its successful writes
    status_conditions   entries of status.conditions, with the time of the system clock
    failure_condition   the condition that shows a failed reconcile
"""
