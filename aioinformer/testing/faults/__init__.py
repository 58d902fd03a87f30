"""Faults of a server or network that a test switches on and off.

Faults ──▶ FaultedRequest ──▶ actions, which the server carries out

faults     the public switches
effects    the effect of each fault, and the actions that follow
exchange   one request under the active faults
"""
