"""Informers in hours of faults, in virtual time, from a seed, judged by the library's guarantees.

python -m tests.simulation --seed 7

plan            everything that will happen in one history, as plain values
generator       draws a plan from a seed
world           carries out a plan: a cluster, a network, informers, listeners, factories
network         the faults of a plan on ``aioinformer.testing``, and records of the bytes
listeners       the listeners of a history and their behaviours
probes          informers that record what they do
records         everything that happened, in order
runner          one history from end to end; shrinks and reports a failure
checks          hold the records to the guarantees
"""
