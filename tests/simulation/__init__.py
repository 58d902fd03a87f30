"""Informers in hours of faults, in virtual time, from a seed, judged by the library's guarantees.

python -m tests.simulation --seed 7

plan              everything that will happen in one history, as plain values
generator         draws a plan from a seed: informers, listeners, factories, writes
fault_generator   draws the faults of a plan
scoped_generator  draws a plan of one informer of several namespaces
world             carries out a plan: a cluster, a network, informers, listeners, factories
network           the faults of a plan on ``aioinformer.testing``, and records of the bytes
listeners         the listeners of a history and their behaviours
filters           the filters of listeners, for the library and for the checks
probes            informers that record what they do
records           everything that happened, in order
runner            one history from end to end; shrinks and reports a failure
checks            hold the records to the guarantees
bugs              planted bugs, which the checks find
leases            elections and shard groups, which coordinate through Leases
pairs             features of the library together, each with each other one
"""
