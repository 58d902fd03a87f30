"""Leader election: of several replicas of a program, one acts.

elector     what programs see
leadership  one term of it: won, lived under, given up
campaign    carries out what the election asks for      standing  what it says of itself
eviction    how a body is made to end                   stepping  a body that asks before a step
guarding    a writer that asks before a request         elapsed   a clock that never stands still
"""
