"""Lists, watches and writes of one resource over HTTP.

client_lister_watcher   the ``ListerWatcher`` of an informer
resource_api            ``client.api(...)``: reads and writes of a program without an informer
read_options            the keywords of its reads
subresources            its answers that are not objects: ``scale`` and ``log``
request_scheduler       the order and rate of requests: one lane per reflector, few lists at once
"""
