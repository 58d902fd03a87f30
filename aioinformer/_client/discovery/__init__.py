"""The resources that a server serves.

fetcher ──documents──▶ catalogue ──▶ discovery ──▶ Resource

discovery      resource names to ``Resource`` values
resource_list  the whole catalogue, as a list to search
served_check   the check if a resource is served now, shared by all informers
fetcher        requests of discovery documents
catalogue      the lookup by name, short name, kind and group
documents      the discovery documents, aggregated and per group
"""
