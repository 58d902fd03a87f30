"""Rules of writes: validation, patches, server-side apply."""
