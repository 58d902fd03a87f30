"""Kubernetes Events: the numbers of an ``EventRecorder``.

Example::

    from aioinformer.eventrecorder import EventStatistics

    events = client.api("events.events.k8s.io")
    async with EventRecorder(events, controller="example.com/shop") as recorder:
        pod = pods.lister.get("web-0")
        recorder.record(pod, "Normal", "Checked", "The pod was checked")
        numbers: EventStatistics = recorder.statistics()
        assert numbers.recorded == 1
"""

from aioinformer.eventrecorder.event_recorder import EventStatistics

__all__ = ["EventStatistics"]
