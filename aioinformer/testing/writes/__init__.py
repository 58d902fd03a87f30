"""Rules of writes: validation, patches, server-side apply.

validation          defaults and checks of a created or updated object
patches             JSON patch, merge patch and strategic merge patch
server_side_apply   apply patches and managed fields
"""
