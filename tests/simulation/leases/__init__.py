"""Elections and shard groups in virtual time: processes that coordinate through Leases.

virtual_time     virtual time, faults by chance, and processes with clocks of their own
lease_store      the server: Leases with compare-and-swap
candidate_specs  the candidates of an election, drawn from a seed
election_world   elections, in which no two candidates may ever lead at once
shard_options    the circumstances of a shard group, drawn from a seed
shard_world      shard groups, in which a shard has one owner, and has one soon
replica          the members of a shard group
"""
