"""The memory of an object, and the time of garbage collection, for each stored form.

    python -m benchmarks.models [--pods N]

The same pods, from the same watch events, are put into the same cache: as bytes, which is the
default of an informer, and as models with the same few fields. Each form has a process of its own.
A full garbage collection visits all objects that may be part of a cycle, and stops the program
meanwhile. Models with ``gc=False`` are not visited.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
from msgspec import Struct

from aioinformer import BUILT_IN, Delta, Event, Indexer, Shape
from aioinformer._core.codec.watch_decoder import WatchDecoder
from benchmarks.meter import resident
from benchmarks.pods import modified
from benchmarks.processes import output

__all__ = ["FORMS", "Weight", "measure"]

PODS = next(resource for resource in BUILT_IN if resource.plural == "pods")
MANY = 50_000
COLLECTIONS = 5
"""Number of full collections. The fastest counts, because noise only adds time."""


class Metadata(Struct, gc=False, frozen=True):
    name: str
    namespace: str
    labels: dict[str, str] = {}


class Container(Struct, gc=False, frozen=True):
    name: str
    image: str


class Spec(Struct, gc=False, frozen=True):
    containers: tuple[Container, ...]  # a list is visited, a tuple of what isn't visited is not
    nodeName: str = ""  # noqa: N815 - the key in the JSON


class Status(Struct, gc=False, frozen=True):
    phase: str = ""
    podIP: str = ""  # noqa: N815 - the key in the JSON


class Pod(Struct, gc=False, frozen=True):
    metadata: Metadata
    spec: Spec
    status: Status


class TrackedMetadata(Struct):
    name: str
    namespace: str
    labels: dict[str, str] = {}


class TrackedContainer(Struct):
    name: str
    image: str


class TrackedSpec(Struct):
    containers: list[TrackedContainer]
    nodeName: str = ""  # noqa: N815 - the key in the JSON


class TrackedStatus(Struct):
    phase: str = ""
    podIP: str = ""  # noqa: N815 - the key in the JSON


class TrackedPod(Struct):
    metadata: TrackedMetadata
    spec: TrackedSpec
    status: TrackedStatus


@dataclass
class DataMetadata:
    name: str
    namespace: str
    labels: dict[str, str]


@dataclass
class DataContainer:
    name: str
    image: str


@dataclass
class DataSpec:
    containers: list[DataContainer]
    nodeName: str = ""  # noqa: N815 - the key in the JSON


@dataclass
class DataStatus:
    phase: str = ""
    podIP: str = ""  # noqa: N815 - the key in the JSON


@dataclass
class DataPod:
    metadata: DataMetadata
    spec: DataSpec
    status: DataStatus


class PodDict(TypedDict):
    metadata: Metadata
    spec: Spec
    status: Status


FORMS: Mapping[str, Shape[Any]] = {
    "bytes": Shape.of(),
    "Struct, gc=False": Shape.of(model=Pod),
    "Struct": Shape.of(model=TrackedPod),
    "dataclass": Shape.of(model=DataPod),
    "TypedDict of those": Shape.of(model=PodDict),
}
"""The compared forms, by name."""


class Weight(Struct):
    """The costs of one form."""

    bytes: float
    """Bytes of memory per object."""
    decode: float
    """Microseconds per event, from its bytes into the cache."""
    collect: float
    """Milliseconds of a full collection in addition to those in an empty process."""


def measure(form: str, pods: int) -> Weight:
    """Fill a cache with objects of one form and measure it, in a process of its own."""
    shape = FORMS[form]
    indexer, keep = Indexer(view=shape.view()), shape.keep()
    events: list[Event] = []
    empty = _collection()
    bare, began = resident(), time.thread_time()
    decoder = WatchDecoder(PODS, converter=keep)
    for number in range(pods):
        for entry in decoder.feed(modified(number, number + 1)).entries:
            assert isinstance(entry, Delta)
            assert indexer.apply(entry, events) is None
        events.clear()
    took = time.thread_time() - began
    collect = _collection() - empty
    assert len(indexer.state.objects) == pods
    return Weight((resident() - bare) / pods, took / pods * 1e6, max(0.0, collect) * 1e3)


def _collection() -> float:
    """Return the CPU seconds of a full collection."""
    times: list[float] = []
    for _ in range(COLLECTIONS):
        began = time.thread_time()
        gc.collect()
        times.append(time.thread_time() - began)
    return min(times)


def table(found: Mapping[str, Weight], pods: int) -> str:
    """Return the results as a table."""
    rows = [f"{pods:,} pods{'':18} bytes an object   µs an event   ms a full collection"]
    rows += [
        f"{form:30} {each.bytes:14,.0f} {each.decode:13.1f} {each.collect:22.1f}"
        for form, each in found.items()
    ]
    return "\n".join(rows)


def main() -> None:
    """Measure all forms, or one form in this process for the parent process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models")
    parser.add_argument("--pods", type=int, default=MANY)
    parser.add_argument("--form", choices=FORMS, help="this one alone, as JSON")
    options = parser.parse_args()
    if options.form:
        sys.stdout.buffer.write(msgspec.json.encode(measure(options.form, options.pods)))
        return
    found: dict[str, Weight] = {}
    for form in FORMS:
        command = [sys.executable, "-m", "benchmarks.models", "--form", form]
        answer = output([*command, "--pods", str(options.pods)], form)
        found[form] = msgspec.json.decode(answer, type=Weight)
    print(table(found, options.pods))


if __name__ == "__main__":
    main()
