"""``aioinformer demo``: an informer at work on an API server of its own.

workload ──▶ ApiServer ──▶ informer ──▶ counters ──▶ dashboard
               ▲                                        └── comparison (at the end)
             faults

The workload is that of ``aioinformer.testing.workload``.
"""
