"""Content that changes on the server without a write: the cache follows, and nothing else moves."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.codec.event_decoder import EventDecoder
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.objects.deltas import Delta, Replaced
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from tests.core.builders import PODS, encode, line, pod_list

Body = dict[str, object]
FIELDS: list[dict[str, object]] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]


class Server:
    """A model of a server: written states, and a default that is served without a write."""

    def __init__(self) -> None:
        self.version = 10
        self.default = 0
        self._written: dict[str, tuple[int, int]] = {}

    def write(self, name: str) -> None:
        self.version += 1
        generation = self._written.get(name, (0, 0))[1] + 1
        self._written[name] = (self.version, generation)

    def delete(self, name: str) -> Body:
        self.version += 1
        return self.body(name, *self._written.pop(name), shown=self.version)

    def body(self, name: str, version: int, generation: int, shown: int = 0) -> Body:
        metadata: dict[str, object] = {
            "name": name,
            "namespace": "web",
            "uid": f"uid-{name}",
            "resourceVersion": str(shown or version),
            "managedFields": FIELDS,
        }
        return {"metadata": metadata, "spec": {"generation": generation, "default": self.default}}

    @property
    def bodies(self) -> dict[str, Body]:
        return {name: self.body(name, *state) for name, state in self._written.items()}


class Reader:
    """Reads a server as the reflector does, and applies all events to a view of its own."""

    def __init__(self) -> None:
        self.indexer = Indexer()
        self.view: dict[str, KubeObject] = {}
        self._decoder = EventDecoder(PODS)

    def read_list(self, server: Server) -> int:
        decoder = ListDecoder(PODS)
        body = encode(pod_list(server.bodies.values(), rv=str(server.version)))
        objects = decoder.feed(body)
        objects += decoder.close()[0]
        return self._replace(map(self.indexer.deduplicate, objects), server)

    def watch_list(self, server: Server) -> int:
        initial = InitialList(self.indexer.deduplicate)
        for body in server.bodies.values():
            initial.apply(self._decode("ADDED", body))
        return self._replace(initial.objects(), server)

    def watch(self, kind: str, body: Body) -> int:
        events: list[Event] = []
        self.indexer.apply(self._decode(kind, body), events)
        return self._receive(events)

    def _decode(self, kind: str, body: Body) -> Delta:
        delta = self._decoder.decode(line(kind, {"kind": "Pod", "apiVersion": "v1", **body}))
        assert isinstance(delta, Delta)
        return delta

    def _replace(self, objects: Iterable[KubeObject], server: Server) -> int:
        replacement = self.indexer.replace(Replaced(list(objects), str(server.version)))
        while not replacement.step(64):
            pass
        events = [*replacement.commit()]
        while not replacement.step(64):
            pass
        return self._receive(events)

    def _receive(self, events: list[Event]) -> int:
        for event in events:
            match event:
                case Added(obj):
                    assert obj.name not in self.view
                    self.view[obj.name] = obj
                case Updated(old, new):
                    assert self.view[new.name] is old
                    assert old != new
                    self.view[new.name] = new
                case Deleted(obj):
                    del self.view[obj.name]
        return len(events)

    def check(self, server: Server) -> None:
        cached = {obj.name: obj for obj in self.indexer.state.objects.values()}
        assert cached == self.view
        for name, body in server.bodies.items():
            assert cached[name]["spec"] == body["spec"]
        assert set(cached) == set(server.bodies)


STEPS = st.sampled_from(["write a", "write b", "delete a", "default", "list", "watch_list"])


@given(st.lists(STEPS, max_size=20))
def test_the_cache_shows_what_is_served_after_every_whole_state(steps: list[str]) -> None:
    server, reader = Server(), Reader()
    for step in [*steps, "list", "watch_list"]:
        before = {name: obj.raw for name, obj in reader.view.items()}
        match step.split():
            case ["write", name]:
                kind = "MODIFIED" if name in server.bodies else "ADDED"
                server.write(name)
                reader.watch(kind, server.bodies[name])
            case ["delete", name] if name in server.bodies:
                reader.watch("DELETED", server.delete(name))
            case ["default"]:
                server.default += 1
            case ["list" | "watch_list" as read]:
                count = (reader.read_list if read == "list" else reader.watch_list)(server)
                after = {name: obj.raw for name, obj in reader.view.items()}
                changed = [name for name in after if before.get(name) != after[name]]
                assert count == len(changed), "an unchanged object is not delivered"
                reader.check(server)
            case _:
                pass


def test_a_repeated_event_with_other_content_is_an_update() -> None:
    server, reader = Server(), Reader()
    server.write("a")
    reader.read_list(server)
    assert reader.watch("ADDED", server.bodies["a"]) == 0

    server.default += 1

    assert reader.watch("MODIFIED", server.bodies["a"]) == 1
    reader.check(server)


def test_an_unchanged_object_has_the_same_bytes_however_it_arrives() -> None:
    server, listed, watched = Server(), Reader(), Reader()
    server.write("a")
    listed.read_list(server)
    watched.watch_list(server)

    assert listed.view["a"].raw == watched.view["a"].raw
    assert listed.view["a"] == watched.view["a"]
