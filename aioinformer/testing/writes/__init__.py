"""Rules of writes: validation, patches, server-side apply.

validation          checks of a created or updated object, and the body to store
patches             JSON patch, merge patch and strategic merge patch
server_side_apply   apply patches and managed fields
"""
