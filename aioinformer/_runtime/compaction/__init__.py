"""Less memory for the caches of informers, by work in calm moments.

cache_compaction   packs cached objects that have changed, and returns free memory after lists
free_memory        the return of free memory to the operating system
"""
