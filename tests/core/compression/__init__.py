"""Objects at rest as zstd frames."""
