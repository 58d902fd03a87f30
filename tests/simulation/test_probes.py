"""The probes show what the checks need, and change nothing."""

from __future__ import annotations

from aioinformer import Added, Deleted, KubeObject
from aioinformer._core.delivery.mailbox import Mailbox
from tests.core.builders import make_object
from tests.simulation.probes import MailboxProbe


def test_a_deletion_behind_a_replay_that_still_has_the_object_will_be_discarded() -> None:
    cached, deleted = (make_object({"metadata": {"name": name, "uid": name}}) for name in "ab")

    def holds(obj: KubeObject) -> bool:
        return obj is cached

    box = Mailbox(holds=holds)
    probe = MailboxProbe(box)
    box.replay([cached, deleted])
    box.put([Added(make_object({"metadata": {"name": "c", "uid": "c"}}))])
    dropping = [probe.dropping]
    box.put([Deleted(deleted, "deleted")])
    dropping.append(probe.dropping)
    assert box.pop() == Added(cached, initial=True)
    dropping.append(probe.dropping)
    event = box.pop()  # skips the deleted object and returns the live event behind it
    assert event is not None
    assert event.obj.name == "c"
    assert box.pop() is None
    dropping.append(probe.dropping)
    assert dropping == [False, True, True, False]
