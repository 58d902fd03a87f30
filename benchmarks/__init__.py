"""The library compared with its peers: ``python -m benchmarks`` prints one table."""
