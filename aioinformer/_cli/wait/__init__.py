"""``aioinformer wait``: wait until one object has reached a state.

goals      the values of ``--for``: the condition to wait for, and the state of the object in words
command    the command
"""
