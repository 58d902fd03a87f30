"""Tasks and the event loop: the ground of the runtime.

blocking_detector  handlers and reconcilers that hold the event loop are reported
event_loop     the loop that an informer belongs to, and time slices in long work
scan           iteration over a search of a cache that yields to the loop
supervisor     the start, failure and end of everything that a factory runs
sync_timeout   a timeout whose error says what isn't synced
task_group     a task group in which a cancelled child is a failure
"""
