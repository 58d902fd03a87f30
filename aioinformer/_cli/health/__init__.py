"""``aioinformer health``: checks of a cluster for use with informers.

command   the command
checks    one function per check
"""
