"""Faults of a server or network, to be switched on by a test.

faults     the public switches
effects    the effect of each fault on a stream of bytes
exchange   one request under the faults that are on
"""
