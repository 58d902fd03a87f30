"""Rules of writes: validation, patches, server-side apply.

validation          checks of a created or updated object, and the body to store
write_options       query parameters of writes
typed_bodies        the known fields of a body, with their types
update_strategies   resources whose updates need a version, or create objects
metadata_rules      rules for names, labels, annotations, owner references, finalizers
role_references     the role of a binding, which no update changes
patches             JSON patch, merge patch and strategic merge patch
scale               the scale subresource
structural_schema   the schema of a custom resource: pruning, defaults, validation
events              the two forms of an Event
server_side_apply   apply patches and managed fields
keyed_lists         the check of the keyed lists of an applied configuration
"""
