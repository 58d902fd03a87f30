"""Measurements of single features, each a command: ``python -m benchmarks.features.shards``.

The pages of the guide that describe the features state the results.
"""
