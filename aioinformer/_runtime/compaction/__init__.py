"""Less memory for the caches of informers, by work in calm moments.

cache_compaction  packs cached objects that have changed
"""
