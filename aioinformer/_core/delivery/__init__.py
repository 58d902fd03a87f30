"""The pending events of one listener: queueing, merging, replay.

events ──▶ mailbox ──▶ next event
             ├── batch_queue    live events, in batches that all listeners share
             ├── coalescing     live events beyond the limit, merged by object
             └── replay         the cached state, for a listener that joins, and for a resync
"""
