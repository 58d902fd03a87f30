"""``aioinformer demo``: an informer at work on an API server of its own.

workload ──▶ ApiServer ──▶ informer ──▶ counters ──▶ dashboard
               ▲                                        └── cache_comparison (at the end)
         interruptions

The workload is that of ``aioinformer.testing.workload``.
"""
