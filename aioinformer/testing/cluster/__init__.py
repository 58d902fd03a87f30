"""The model of an API server: objects, versions, pages and watches, without I/O and clock.

write ──▶ registry ──▶ storage ──▶ history ──▶ watches
list  ──▶ collection_requests ──▶ pages ──▶ selection ──▶ storage
watch ──▶ collection_requests ──▶ watch_start ──▶ selection ──▶ watches
"""
