"""Lists, watches and writes of one resource over HTTP.

lister_watcher    the ``ListerWatcher`` of an informer
resource_writer   the ``ResourceWriter`` of a program
scheduler         the order and rate of requests: one lane per reflector, few lists at once
"""
