"""Bytes from the server to objects, the first stage of the data flow.

bytes ──▶ watch_decoder ─┐
bytes ──▶ list_decoder ──┼──▶ object_decoder ──▶ shape ──▶ KubeObject
bytes ──▶ status_decoder  (the server's ``Status`` of an error)

watch_decoder    a watch to batches of deltas and bookmarks, or to an initial list
event_decoder    a line of a watch to a delta, a bookmark or an error
metadata_head    the metadata of a change without a pass over the rest of its line
initial_list     the objects that a WatchList has shown up to its end mark
line_splitter    chunks of a watch to lines
list_decoder     a streamed list to objects, while its bytes still arrive
json_scanner     the items and the long items of a list whose bytes are still arriving
metadata_form    metadata alone, for informers with ``metadata_only=True``
type_check       the check of an object's kind and namespace
object_decoder   one object's bytes to a ``KubeObject``, without building its body
status_decoder   a ``Status`` body
shape            ``model=``, ``transform=`` and ``convert=``: the form in which objects are kept
"""
