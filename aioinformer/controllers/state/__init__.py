"""The work queue and the results of reconciles, without waiting.

key ──▶ key_queue ──▶ reconcile ──▶ Result ──▶ rate_limiters, delay_queue ──▶ key_queue
"""
