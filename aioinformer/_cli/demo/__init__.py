"""``aioinformer demo``: an informer at work on an API server of its own.

workload ──▶ ApiServer ──▶ informer ──▶ counters ──▶ dashboard
               ▲                                        └── comparison (at the end)
             faults

command      the command
faults       interruptions of the server, on a schedule
counters     counts of events and delays
dashboard    the display
comparison   the cache beside the server, at the end

The workload is that of ``aioinformer.testing.workload``.
"""
