"""Random changes of pods, which are created, updated, deleted, and created again by name."""

from __future__ import annotations

import random

from aioinformer import ObjectKey
from aioinformer.testing import Cluster


class PodWorkload:
    """A workload that changes one pod at a time, and records the whole state after each change."""

    def __init__(self, cluster: Cluster, seed: int, *, names: int = 20) -> None:
        """Create a workload over ``names`` pod names in each of two namespaces."""
        self._cluster = cluster
        self._random = random.Random(seed)
        self._names = names
        self.current_state: dict[ObjectKey, tuple[str, str]] = {}
        """The existing objects: uid and resourceVersion by key."""
        self.states_by_version: dict[str, dict[ObjectKey, tuple[str, str]]] = {}
        """The existing objects at each of the cluster's resourceVersions."""
        self._record_state()

    def apply_changes(self, times: int = 1) -> None:
        """Make this number of changes."""
        for _ in range(times):
            namespace = self._random.choice(("web", "db"))
            name = f"pod-{self._random.randrange(self._names)}"
            key = ObjectKey(namespace, name)
            if key not in self.current_state:
                self._put(key, create=True)
            elif self._random.random() < 0.3:
                self._cluster.delete("pods", name, namespace=namespace)
                del self.current_state[key]
            else:
                self._put(key, create=False)
            self._record_state()

    def _put(self, key: ObjectKey, *, create: bool) -> None:
        spec = {"nodeName": f"node-{self._random.randrange(5)}", "n": self._random.random()}
        if create:
            body = {"metadata": {"name": key.name}, "spec": spec}
            obj = self._cluster.create("pods", body, namespace=key.namespace)
        else:
            obj = self._cluster.merge_patch(
                "pods", key.name, {"spec": spec}, namespace=key.namespace
            )
        self.current_state[key] = (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])

    def _record_state(self) -> None:
        self.states_by_version[str(self._cluster.resource_version)] = dict(self.current_state)
