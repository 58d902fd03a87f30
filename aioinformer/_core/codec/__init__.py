"""Bytes from the server to objects, the first stage of the data flow.

bytes ──▶ watch_decoder ─┐
bytes ──▶ list_decoder ──┼──▶ object_decoder ──▶ shape ──▶ KubeObject
bytes ──▶ status_decoder  (the server's ``Status`` of an error)
"""
