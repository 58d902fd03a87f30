"""The reading of one page of a list."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

import pytest

from aioinformer import KubeObject
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._runtime.reflector.list_reader import read_page
from aioinformer.errors import ConnectionLost, ProtocolError
from tests.runtime.scripted_source import PODS, body

PAGE = (
    b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t"},'
    b'"items":[' + ",".join(body(name, 5) for name in ("a", "b", "c")).encode() + b"]}"
)


async def chunks(*parts: bytes, error: Exception | None = None) -> AsyncGenerator[bytes]:
    for part in parts:
        yield part
    if error is not None:
        raise error


@pytest.mark.parametrize("yield_after_each", [False, True])
async def test_the_objects_of_a_page_are_taken_in_order(yield_after_each: bool) -> None:
    taken: list[list[str]] = []
    sizes: list[tuple[int, int]] = []

    def take(objects: Iterable[KubeObject]) -> None:
        taken.append([obj.name for obj in objects])

    envelope = await read_page(
        chunks(PAGE),
        ListDecoder(PODS),
        take,
        yield_after_each=yield_after_each,
        received=lambda size, objects: sizes.append((size, objects)),
    )

    assert (envelope.resource_version, envelope.continue_token) == ("7", "t")
    assert [name for names in taken for name in names] == ["a", "b", "c"]
    assert sum(size for size, _ in sizes) == len(PAGE)
    assert sum(objects for _, objects in sizes) == 3
    if yield_after_each:
        assert all(len(names) <= 1 for names in taken)


async def test_a_page_that_breaks_off_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="broke off"):
        await read_page(chunks(PAGE[:-20]), ListDecoder(PODS), list, yield_after_each=False)
    lost = ConnectionLost("reset by peer")
    with pytest.raises(ConnectionLost):
        await read_page(
            chunks(PAGE[:-20], error=lost), ListDecoder(PODS), list, yield_after_each=False
        )
