"""Events to keys to reconciles.

informer ──▶ triggers ──▶ WorkQueue ──▶ workers ──▶ reconcile_runs ──▶ the program's reconcile

    triggers           handlers that turn an event into keys
    work_queue         the work queue with waiting
    reconcile_runs     one reconcile: context, timeout, result
    finalizer          the finalizer: added before the first reconcile, removed after cleanup
    reconcile_context  the reasons and the writes of one run, as its reconciler sees them
    run_writes         the writes of one run: status and owned objects
    own_object_writer  keeps them from an object that was created again under the same name
    own_writes         the writes for which the next run of a key waits
    workers            the tasks that take keys
    lifecycle          one run of a controller, from its triggers to its last reconcile
    health             the public state of a controller, and the reports of its failures
    options            the options of a controller
    controller         the public class
"""
