"""Lists, watches and writes of one resource over HTTP.

client_lister_watcher   the ``ListerWatcher`` of an informer
client_writer           the ``ResourceWriter`` of a program
request_scheduler       the order and rate of requests: one lane per reflector, few lists at once
"""
