"""Lists, watches and writes of one resource over HTTP."""
