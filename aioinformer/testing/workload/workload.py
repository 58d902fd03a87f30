"""A stream of writes to the pods of a cluster: pods are created, change and are deleted."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from aioinformer._core.quantities import quantity
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.workload.pods import (
    APPS,
    NODES,
    PodBody,
    assign_node,
    create_pod,
    end_pod,
    is_ready,
    restart_pod,
    start_pod,
    toggle_ready,
)

CREATE_SHARE = 0.15
"""The share of writes that create a pod while the cluster has the intended number of pods. An equal
share deletes a pod. The other writes are updates, as in a real cluster."""

PENDING_UPDATE_SHARE = 0.5
"""The share of updates that go to a pod that does not run yet. A pod needs two of them to run, so
that few pods wait at any time."""

UNREADY_LIMIT = 0.02
"""The share of pods that may stay unready while they run. Above it, the updates that don't go to a
pending pod go to the pod that became unready first."""

INITIAL_RUNNING_SHARE = 0.95


class PodWorkload:
    """A generator of writes that fills a cluster with pods and changes them."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        objects: int,
        seed: int,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare writes to ``cluster``; ``populate`` and ``step`` make them.

        The same ``seed`` gives the same writes, with about ``objects`` pods. The caller decides the
        rate and the end. ``clock`` gives the timestamps in a pod's status.
        """
        self._cluster = cluster
        self._objects = objects
        self._random = Random(seed)
        self._clock = clock
        self._keys: list[tuple[str, str]] = []
        self._key_set: set[tuple[str, str]] = set()
        self._pending: deque[tuple[str, str]] = deque()
        """The pods that do not run yet, and some that were deleted before they ran."""
        self._unready: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The running pods that are not ready, in the order in which they became unready."""

    def __len__(self) -> int:
        return len(self._keys)

    def populate(self, limit: int) -> bool:
        """Create up to ``limit`` pods, most of them running. Return True if no pod is missing."""
        for _ in range(min(limit, self._objects - len(self._keys))):
            pod = self._make_pod()
            if self._random.random() < INITIAL_RUNNING_SHARE:
                pod = self._start_pod(self._assign_node(pod))
            self._create(pod)
        return len(self._keys) >= self._objects

    def step(self) -> None:
        """Make one write."""
        surplus = (len(self._keys) - self._objects) / self._objects
        chance = self._random.random()
        if not self._keys or chance < CREATE_SHARE - surplus:
            self._create(self._make_pod())
        elif chance > 1 - CREATE_SHARE - surplus:
            self._delete(self._random.randrange(len(self._keys)))
        else:
            self._update()

    # -- writes --------------------------------------------------------------------------------

    def _create(self, pod: PodBody) -> None:
        self._cluster.create("pods", pod)
        key = _key(pod)
        self._keys.append(key)
        self._key_set.add(key)
        if pod["status"]["phase"] == "Pending":
            self._pending.append(key)

    def _delete(self, position: int) -> None:
        namespace, name = key = self._keys[position]
        # The last key takes the place of the deleted one, so that no other key moves.
        self._keys[position] = self._keys[-1]
        self._keys.pop()
        self._key_set.remove(key)
        self._unready.pop(key, None)
        self._cluster.delete("pods", name, namespace=namespace)

    def _update(self) -> None:
        """Change a pod that waits to run or to become ready, or a random one."""
        waiting = self._choose_waiting()
        position = self._random.randrange(len(self._keys))
        namespace, name = key = waiting or self._keys[position]
        pod = self._next_state(self._cluster.get("pods", name, namespace=namespace))
        if pod is None:
            self._delete(position)
            return
        self._cluster.update("pods", pod)
        phase = pod["status"]["phase"]
        if waiting and phase == "Pending":
            self._pending.append(waiting)
        if phase == "Running" and not is_ready(pod):
            self._unready.setdefault(key)
        else:
            self._unready.pop(key, None)

    def _choose_waiting(self) -> tuple[str, str] | None:
        """Return the pod that has waited longest for an update, or ``None`` for a random one."""
        if self._random.random() < PENDING_UPDATE_SHARE:
            return self._longest_pending()
        is_above_limit = len(self._unready) > self._objects * UNREADY_LIMIT
        return next(iter(self._unready)) if is_above_limit else None

    def _longest_pending(self) -> tuple[str, str] | None:
        while self._pending:
            key = self._pending.popleft()
            if key in self._key_set:
                return key
        return None

    # -- a pod's life --------------------------------------------------------------------------

    def _make_pod(self) -> PodBody:
        weights = [app.weight for app in APPS]
        while True:
            pod = create_pod(self._random.choices(APPS, weights)[0], self._random)
            if _key(pod) not in self._key_set:
                return pod

    def _next_state(self, pod: PodBody) -> PodBody | None:
        """Return the pod after its next step, or ``None`` if the next step is its deletion."""
        phase = pod["status"]["phase"]
        if phase == "Pending":
            return self._start_pod(pod) if "nodeName" in pod["spec"] else self._assign_node(pod)
        if phase != "Running":
            return None
        if not is_ready(pod):
            return toggle_ready(pod, self._timestamp())
        chance = self._random.random()
        if chance < 0.04:
            return end_pod(pod, self._random.choice(("Succeeded", "Failed")), self._timestamp())
        return (
            restart_pod(pod, self._timestamp())
            if chance < 0.15
            else toggle_ready(pod, self._timestamp())
        )

    def _assign_node(self, pod: PodBody) -> PodBody:
        # A node with a higher number gets fewer pods, so that the bars of the display differ.
        weights = range(len(NODES) + 6, 6, -1)
        return assign_node(pod, self._random.choices(NODES, weights)[0], self._timestamp())

    def _start_pod(self, pod: PodBody) -> PodBody:
        third, fourth = self._random.randrange(256), self._random.randrange(1, 255)
        return start_pod(pod, f"10.244.{third}.{fourth}", self._timestamp())

    def _timestamp(self) -> str:
        return self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")

    def __repr__(self) -> str:
        return f"<PodWorkload of about {quantity(self._objects, 'pod')}, {len(self)} now>"


def _key(pod: PodBody) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
