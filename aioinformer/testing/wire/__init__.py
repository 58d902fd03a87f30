"""Bytes of requests and responses, in the form of the real API server.

served_resources   resources with their verbs, subresources and categories
urls          paths to resources, objects and subresources
selection     selectors and shards of lists and watches
field_labels  the fields by which selectors select
negotiation   the Accept header: JSON, tables, metadata only
encoding      lists, watch events and their dialects
tables        the metadata form and the table form of objects
json_paths    the paths of printer columns
statuses      errors as ``Status`` bodies
version_statuses   errors about versions and continue tokens
discovery     discovery documents
"""
