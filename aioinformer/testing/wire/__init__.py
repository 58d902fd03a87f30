"""Bytes of requests and responses, as the real API server writes them.

urls          paths to resources, objects and subresources
negotiation   the Accept header: JSON, tables, metadata only
encoding      lists, watch events and gzip
tables        the table form of objects
statuses      ``Status`` bodies
discovery     discovery documents
"""
