"""Delivery of events from the pump to handlers and event streams.

pump ──▶ listener ──▶ runner ──▶ call ──▶ async handler
           │             └── inline_dispatch ──▶ plain function
           └──▶ streams ──▶ async for

listener          a mailbox with a wake-up; the gate at which the pump waits
statistics        the numbers of a listener
options           the options of a handler or a stream
registration      a listener with a handler; the object that ``add_handler`` returns
handlers          the forms of a handler, compiled into one function; views and spans
runner            the task of one handler: in order, or several objects at once
inline_dispatch   plain functions, called together in one callback of the loop
call              one call of a handler: timeout, cancellation, failure
handler_errors    exceptions of handlers: log, metrics, error hook
thread_pool       handlers that run in threads
streams           ``async for`` over one informer or several
"""
