"""The library beside its peers, on the same bytes: ``python -m benchmarks`` prints one table."""
