"""Tasks and the event loop: the ground of the runtime.

blocking       handlers and reconcilers that held the event loop are reported
blocking_stacks  a thread that logs the stack of code that holds the event loop
event_loop     the loop that an informer belongs to, and time slices in long work
scan           iteration over a search of a cache that yields to the loop
steps          a coroutine whose steps pass through another object
supervisor     the start, failure and end of everything that a factory runs
sync_timeout   a timeout whose error says what isn't synced
task_group     a task group in which a cancelled child is a failure
"""
