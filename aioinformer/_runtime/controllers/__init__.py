"""Controllers: what informers tell becomes keys, and workers reconcile them.

As the data flows::

    triggers    events of informers -> keys
    queue       keys that workers wait for      turns     whose turn it is
    workers     a key, and what becomes of it   reconciles  one run of it, to its end
    setbacks    what went wrong, told           health    what a controller says of itself
    shifts      the life of all that            controller  what programs see
"""
