"""Reports of an informer: health, log, error hook, metrics, spans.

reflector, pump, handlers ──▶ reporter ──▶ health, log, on_error, metrics

health         the public state of one informer, and the problems in it
reporter       the one place that turns a problem into health, log lines and metrics
safe_metrics   a program's metrics object, whose exceptions are caught
safe_tracing   a program's tracing object, whose exceptions are caught
"""
