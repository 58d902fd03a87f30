"""The model of an API server: objects, versions, pages and watches, without I/O and clock.

write ──▶ registry ──▶ storage ──▶ history ──▶ watches
list  ──▶ collection_requests ──▶ pages ──▶ selection ──▶ storage
watch ──▶ collection_requests ──▶ watch_start ──▶ selection ──▶ watches

cluster       the public model
registry      single writes: create, update, patch, apply, delete
collection_requests   lists, watches, deletions of many objects
storage       the objects of each resource, and snapshots
history       the changes that a watch can start from
watches       one watch: the events that its selectors select
watch_start   the start of a watch: version, initial events, errors
pages         lists in pages, and continue tokens
definitions   CustomResourceDefinitions, and the resources that they add
garbage_collection   the deletion of dependents after their owners
settling      the wait until programs have reacted to all changes
features      the server version and features that a cluster imitates
"""
