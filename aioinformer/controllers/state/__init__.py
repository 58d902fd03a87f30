"""The work queue and the results of reconciles, without waiting.

key ──▶ work_queue ──▶ reconcile ──▶ Result ──▶ rate_limiters, delay_queue ──▶ work_queue

    work_queue         the keys that wait, that are processed, and that must run again
    queue_items        one queued key, and its priority
    delay_queue        keys that wait for their time
    rate_limiters      the delay before a failed key is retried
    reconcile          reasons and result of a reconcile, and the keys that fail
    owner_references   owner references of objects
    applied_children   the children that need not be applied again
    finalizers         the next step of a finalizer, and the patches for it
"""
