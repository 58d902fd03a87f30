"""The content of a cache file: the identity that must match, and the changes to write.

identity         the scope that a stored state belongs to
block_index      the blocks of changed objects, and the newest state of each
change_record    the newest state of each object that has changed since the last write
recorded_shards  the shards of a group whose objects a file may promise
"""
