"""Objects as they are cached, and the deltas and events that carry them.

kube_object       a cached object: its JSON bytes and the metadata that the cache needs; events
object_body       the state of an object's body: closed or decoded; the decoded bodies that are kept
identity          keys of objects, and the order of resourceVersions
resources         the resources that a URL can name
readonly          mappings and sequences that reject every write
json_depth        a limit on the nesting of JSON
decode_errors     errors of decoding, and at a Secret, without the input that they quote
deltas            entries of the DeltaFIFO
stored            replacements for an object: a model, or the record of a rejection
pydantic_schema   the schema and the serializer of read-only objects for pydantic, made at first use
view              a cached object as handlers and readers receive it, after ``convert=``
"""
