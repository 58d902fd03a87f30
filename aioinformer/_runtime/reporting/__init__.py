"""Reports of an informer: health, log, error hook, metrics, spans.

reflector, pump, handlers ──▶ reporter ──▶ health, log, on_error, metrics
"""
