"""Bytes of requests and responses, in the form of the real API server.

urls          paths to resources, objects and subresources
negotiation   the Accept header: JSON, tables, metadata only
encoding      lists, watch events and their dialects
tables        the metadata form and the table form of objects
statuses      errors as ``Status`` bodies
discovery     discovery documents
"""
