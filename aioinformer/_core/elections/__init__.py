"""Who leads: one candidate's side of an election, as plain state. Time is an argument.

leases   what a Lease says, and how it is written
steps    the numbers of an election, what it is told and what it asks for
machine  what was seen of the Lease -> what to do next
"""
