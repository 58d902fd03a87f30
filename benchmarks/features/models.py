"""Measure memory and garbage collection for each form in which an informer can store objects.

    python -m benchmarks.features.models [--pods N]

The same pods are decoded from the same watch events and stored in the same cache: as bytes, an
informer's default, and as models with the same few fields. Each form is measured in its own
process. A full run of Python's garbage collector visits every object that may be part of a cycle,
and the program stops meanwhile; models with ``gc=False`` avoid these visits.
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
from benchmarks.load.meter import resident
from benchmarks.load.pods import modified
from benchmarks.load.processes import output

__all__ = ["FORMS", "Weight", "measure"]

PODS = next(resource for resource in BUILT_IN if resource.plural == "pods")
MANY = 50_000
COLLECTIONS = 5
"""The number of full collections; the quickest counts, since noise only adds."""


class Metadata(Struct, gc=False, frozen=True):
    name: str
    namespace: str
    labels: dict[str, str] = {}


class Container(Struct, gc=False, frozen=True):
    name: str
    image: str


class Spec(Struct, gc=False, frozen=True):
    containers: tuple[Container, ...]  # a tuple of untracked items isn't visited, a list is
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
    """The cost of one form."""

    bytes: float
    """Bytes of memory for each object, everything included."""
    decode: float
    """Microseconds an event, from its bytes into the cache."""
    collect: float
    """Milliseconds of a full collection, less those in an empty process."""


def measure(form: str, pods: int) -> Weight:
    """Fill a cache with objects of this form, and measure it. Run it in a process of its own."""
    shape = FORMS[form]
    indexer, keep = Indexer(view=shape.view()), shape.converter()
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
    """Return the seconds of CPU that a full collection takes."""
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
    """Measure every form in a subprocess; with ``--form``, measure that form in this process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.models")
    parser.add_argument("--pods", type=int, default=MANY)
    parser.add_argument("--form", choices=FORMS, help="only this form; print JSON")
    options = parser.parse_args()
    if options.form:
        sys.stdout.buffer.write(msgspec.json.encode(measure(options.form, options.pods)))
        return
    found: dict[str, Weight] = {}
    for form in FORMS:
        command = [sys.executable, "-m", "benchmarks.features.models", "--form", form]
        answer = output([*command, "--pods", str(options.pods)], form)
        found[form] = msgspec.json.decode(answer, type=Weight)
    print(table(found, options.pods))


if __name__ == "__main__":
    main()
