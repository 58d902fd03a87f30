"""``aioinformer health``: checks of a cluster for use with informers.

command   the command
checks    requests to the cluster, and their results
"""
