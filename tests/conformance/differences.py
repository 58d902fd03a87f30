"""The deliberate differences from client-go, each with its consequence for programs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIFFERENCES", "MAX_DIFFERENCES", "Difference"]

MAX_DIFFERENCES = 30
"""The most rows. A port with more differences would be another library."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One deliberate difference."""

    items: tuple[int, ...]
    """The numbers of the items that it concerns."""
    here: str
    """The behaviour here."""
    consequence: str
    """The consequence for a program."""


DIFFERENCES = (
    Difference(
        (7,),
        "Three short watches in a row lead to a list; client-go lists after each.",
        "A server that cuts watches gets fewer lists.",
    ),
    Difference(
        (10, 74, 76, 79, 86),
        "The queue delivers each change by itself in the order of arrival, as client-go's RealFIFO "
        "does since 1.36. The mailboxes of slow listeners merge instead.",
        "A listener that keeps up receives each state, and a slow one the last state.",
    ),
    Difference(
        (12, 45),
        "An error never ends the reflector's run. The state machine decides the next request.",
        "A program handles errors in ``on_error`` and ``health``, and writes no retry loop.",
    ),
    Difference(
        (17, 47),
        "There is no separate window for internal errors of a watch; all failures share one "
        "backoff. The default of client-go is a window of zero, which is the same.",
        "``backoff=`` is the one setting.",
    ),
    Difference(
        (18, 52),
        "A resync is a timer of each listener over the cache. A resync cannot fail and does not "
        "end the watch; no listener's period changes another one's.",
        "Resyncs continue while the server cannot be reached.",
    ),
    Difference(
        (26, 56),
        "A ``Resource`` names the type, and options are keywords of the constructor.",
        "There is no example object, and no setter that is too late after the start.",
    ),
    Difference(
        (31,),
        "A transformer is called once for each object of a WatchList; client-go calls it twice.",
        "A transformer need not be idempotent.",
    ),
    Difference(
        (34, 36),
        "A WatchList without its end bookmark ends after a deadline, is reported as a problem, and "
        "a list follows. client-go logs a warning every ten seconds and waits.",
        "The informer syncs from a server that ignores ``sendInitialEvents``.",
    ),
    Difference(
        (38,),
        "Three failures of a WatchList in a row lead to a list; 400, 403, 404, 405 and 422 lead to "
        "one in the same cycle. client-go lists after each failure.",
        "A server that comes back after an outage is not listed by all its informers.",
    ),
    Difference(
        (48,),
        "``verify()`` compares the cache with the server, returns the differences and can repair "
        "them. client-go has a detector for tests, which panics.",
        "The comparison can run in production.",
    ),
    Difference(
        (49,),
        "An index that is added to a filled cache is built in steps: ``await add_index()``.",
        "The event loop is not blocked; the index can be read when the call returns.",
    ),
    Difference(
        (54,),
        "A relist delivers changed objects only, to each listener. client-go delivers unchanged "
        "objects as well to a listener whose resync is due.",
        "Unchanged objects arrive with ``resync=True`` at the listener's own period.",
    ),
    Difference(
        (57, 119),
        "A transformer must keep name, namespace, uid and resourceVersion of the object.",
        "A transformer that changes the identity is reported, and the object before stays cached.",
    ),
    Difference(
        (59,),
        "``Registration.remove()`` is a method of the registration.",
        "The handler of another informer cannot be removed by mistake.",
    ),
    Difference(
        (69, 111),
        "An exception of a handler is logged and counted, and the next event follows at once. The "
        "event counts as delivered. ``fail_fast=True`` ends the factory instead.",
        "A faulty handler keeps no registration from being synced.",
    ),
    Difference(
        (75, 82, 91),
        "Deleted objects of a relist are found when the cache applies the list, as with "
        "client-go's atomic FIFO, not when the list is queued.",
        "The last state in ``Deleted`` is the cached state.",
    ),
    Difference(
        (80, 84, 96, 100),
        "A resync goes from the cache to the listener's mailbox and not through the queue.",
        "A resync never overtakes a change, and skips objects with newer events.",
    ),
    Difference(
        (85, 88, 94),
        "The queue has synced when a whole state was popped. Single additions do not sync a queue, "
        "and duplicates of one object count once.",
        "Only a program with a ``DeltaFIFO`` of its own can notice.",
    ),
    Difference(
        (89,),
        "``DeltaQueue`` has no close; cancelling a waiting consumer ends the wait.",
        "A program ends its consumers as it ends any task.",
    ),
    Difference(
        (97, 98, 107, 115),
        "Batches end by time and by the room in mailboxes. An object that an index function or a "
        "transformer rejects is reported by itself, and the object before stays cached.",
        "One faulty object holds back no other one; ``health.rejected`` names it.",
    ),
    Difference(
        (114,),
        "``Deleted`` always has an object; ``reason`` says whether the deletion was seen.",
        "No handler needs a case for a tombstone without an object.",
    ),
    Difference(
        (121, 122),
        "``concurrency=`` of a handler tracks calls that run at once. The tracker itself is not "
        "public.",
        "A program that starts tasks of its own for events waits for these tasks itself.",
    ),
    Difference(
        (123,),
        "There is no lazily computed value.",
        "``functools.cached_property`` or an index serves.",
    ),
    Difference(
        (127,),
        "Informers may share a name in metrics: a label never names a selector or an object.",
        "The series of two informers of one resource and namespace are one series.",
    ),
    Difference(
        (129,),
        "There is no mutation cache, expiration cache or heap. ``wait_for`` waits until the cache "
        "shows a program's own write. ``aioinformer.testing`` has a mutation detector.",
        "A program waits for its write instead of caching the answer of the server.",
    ),
    Difference(
        (130,),
        "A drain waits for queued keys too, and a second shutdown does not cut a drain short.",
        "``timeout=`` bounds a drain.",
    ),
    Difference(
        (132,),
        "There is no ``WithMaxWaitRateLimiter``.",
        "``ItemExponential(cap=...)`` has the same effect.",
    ),
)
"""The rows of the guide's table."""
