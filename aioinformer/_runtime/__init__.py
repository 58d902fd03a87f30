"""The asyncio shell: tasks, waiting and waking around the core.

reflector     asks for pages and streams, feeds what comes into the queue
delta_queue   the DeltaFIFO with somebody waiting at both ends
informer      pumps the queue into the indexer and tells the listeners
listeners     one mailbox each: handlers and streams
factory       owns the task in which informers live
"""
