"""Reports of an informer: health, log, error hook, metrics, spans.

reflector, pump, handlers ──▶ reporter ──▶ health, log, on_error, metrics

health         the public state of one informer
error_copy     copies of errors without tracebacks, for the parts that remember an error
error_hook     calls of the program's error hook, and the limit on logged tracebacks
error_texts    texts of exceptions, without raising
key_logger     a logger that names a controller and a key
problem        the failure that an error hook is called with
readiness      checks of informers for probes
reflector_status  the current state of a reflector
reporter       turns what an informer's parts report into health, log lines, metrics and problems
safe_call      calls of the program's instrumentation, whose exceptions are caught
safe_metrics   metrics that never raise
safe_tracing   spans that never raise
"""
