"""Queue to cache to listeners: what runs an informer, and the interface of features.

DeltaQueue ──▶ pump ──▶ Indexer
                 └──▶ every listener of listener_registry
"""
