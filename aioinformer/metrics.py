"""Metrics: the protocol that informers, work queues and controllers report numbers to.

``aioinformer.adapters`` implements it for Prometheus and OpenTelemetry, a program for the rest.

Example::

    from aioinformer.metrics import Levels, Metrics

    class Sizes(Metrics):
        def __init__(self):
            self.levels = {}

        def informer_started(self, informer, levels):
            self.levels[informer] = levels

    sizes = Sizes()
    nodes = informers.informer("nodes", metrics=sizes)
    await nodes.wait_synced(timeout=30)
    (read,) = sizes.levels.values()
    now: Levels = read()
    assert (now.objects, now.synced) == (0, True)

    silent = informers.informer("secrets", metrics=Metrics())  # nothing, instead of the factory's
"""

from aioinformer._core.instrumentation import Levels, Metrics

__all__ = ["Levels", "Metrics"]
