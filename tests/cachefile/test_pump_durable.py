"""The pump and durable listeners: which state of a scope is its first one."""

from __future__ import annotations

from aioinformer import KubeObject, Replaced, Updated
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.namespaces.state.partitions import PartitionedIndexer
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop


async def test_a_relist_of_a_scope_is_delivered_while_another_scope_has_no_state_yet() -> None:
    indexer = PartitionedIndexer()
    for namespace in ("default", "web"):
        indexer.add_scope(namespace)
    queue = DeltaQueue()
    pump = Pump("pods", queue, indexer)
    listener = Listener("audit", Mailbox(holds=indexer.holds), pump.gate)
    listener.position = DurablePosition("audit", "now")
    pump.join(listener)

    async def listed(obj: KubeObject) -> None:
        queue.put(Replaced([obj], obj.resource_version, scope="web"))
        await wait_until(lambda: obj.key in indexer.state.objects and not queue.fifo)
        await yield_to_loop()

    async with running_in_background(pump.run()):
        await listed(pod("a", 1))
        assert listener.next_nowait() is None, "the listener begins with later changes"
        await listed(pod("a", 2))
        assert not pump.synced.is_set()

    assert listener.next_nowait() == Updated(pod("a", 1), pod("a", 2))
