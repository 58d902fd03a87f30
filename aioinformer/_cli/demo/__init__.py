"""``aioinformer demo``: an informer at work on an API server of its own.

workload ──▶ ApiServer ──▶ informer ──▶ counters ──▶ dashboard
               ▲                                        └── comparison (at the end)
             faults

command      the command
workload     changes at a given rate
pods         the pods that change
faults       interruptions of the server, on a schedule
counters     counts of events and delays
dashboard    the display
comparison   the cache beside the server, at the end
"""
