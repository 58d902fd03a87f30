"""Faults of a server or network that a test switches on and off.

Faults ──▶ FaultedRequest ──▶ actions, which the server carries out
"""
