"""The resources that a server serves.

fetcher ──documents──▶ catalogue ──▶ discovery ──▶ Resource
"""
