"""Owners that are counted, found and given up."""

from __future__ import annotations

import pytest

from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.references import (
    FIT_BYTES,
    FIT_PART,
    MAX_OWNERS,
    MAX_REFERENCE,
    MIN_MEMBERS,
    ReferenceTable,
    find_owner,
)
from aioinformer._core.compression.zstd import find_zstd


def owned(number: int, *, size: int = 400, before: int = 0) -> bytes:
    """Return the JSON of an object of an owner.

    Args:
        number: the number of the owner.
        size: the bytes of the JSON.
        before: bytes of metadata before the owner.
    """
    head = b'{"metadata":{"name":"%b","ownerReferences":[{"kind":"Foo","uid":"%b"}]},"data":"' % (
        b"n" * before,
        uid(number),
    )
    return head + b"x" * (size - len(head) - 2) + b'"}'


def uid(number: int) -> bytes:
    return b"%036d" % number


def table(*owners: int, count: int = MIN_MEMBERS) -> ReferenceTable:
    """Return a table that has counted so many objects of each of these owners."""
    references = Compressor(find_zstd()).references
    for number in owners:
        for _ in range(count):
            references.count(owned(number))
    return references


def test_an_owner_is_looked_for_in_the_metadata_at_the_beginning() -> None:
    assert find_owner(owned(7, size=20_000, before=10_000)) == uid(7)
    assert find_owner(owned(7, size=20_000, before=16_500)) == b""
    # The reference begins in time, and its uid does not.
    assert find_owner(owned(7, size=20_000, before=16_384 - 60)) == b""


def test_the_share_of_objects_with_a_reference_is_that_of_all_counted_ones() -> None:
    references = table(1)
    assert references.expected_share == 1
    for number in range(MIN_MEMBERS):
        references.count(owned(100 + number))
    assert references.expected_share == 0.5
    for _ in range(2 * MIN_MEMBERS):
        references.count(b'{"metadata":{"name":"a"}}')
    assert references.expected_share == 0.25
    references.count_again()
    assert references.expected_share == 0
    assert repr(references) == "<ReferenceTable references=0 owners=0>"
    for _ in range(MIN_MEMBERS):
        references.count(owned(1))
    assert references.expected_share == 1


def test_an_owner_has_a_reference_from_its_least_members_on() -> None:
    few, enough = table(1, count=MIN_MEMBERS - 1), table(1, 2)
    assert few.find(owned(1)) is None
    group = enough.find(owned(1))
    assert group is not None
    assert group.is_reference
    assert enough.find(owned(1)) is group
    other = enough.find(owned(2))
    assert other not in {None, group}
    assert enough.find(owned(3)) is None
    assert repr(enough) == "<ReferenceTable references=2 owners=2>"


@pytest.mark.parametrize(("size", "found"), [(MAX_REFERENCE, True), (MAX_REFERENCE + 1, False)])
def test_the_largest_object_with_a_reference_has_the_most_bytes(size: int, found: bool) -> None:
    references = Compressor(find_zstd()).references
    for _ in range(MIN_MEMBERS):
        references.count(owned(1, size=size))
    assert (references.expected_share > 0) == found
    assert (references.find(owned(1, size=size)) is not None) == found
    assert (table(1).find(owned(1, size=size)) is not None) == found


def test_owners_are_forgotten_between_two_walks_only_if_there_are_too_many() -> None:
    references = Compressor(find_zstd()).references
    for number in range(MAX_OWNERS):
        references.count(owned(number))
    references.rest()
    assert repr(references) == f"<ReferenceTable references=0 owners={MAX_OWNERS}>"
    references.count(owned(MAX_OWNERS))
    references.rest()
    assert repr(references) == "<ReferenceTable references=0 owners=0>"


def test_a_reference_that_leaves_too_many_bytes_is_given_up() -> None:
    references, raw = table(1, 2), owned(1)
    group, other = references.find(raw), references.find(owned(2))
    assert group is not None
    assert other is not None
    limit = FIT_BYTES + len(raw) // FIT_PART
    assert references.fits(raw, bytes(limit))
    assert references.find(raw) is group
    assert not references.fits(raw, bytes(limit + 1))
    assert references.find(raw) is None, "its members are to be counted again"
    assert not references.fits(raw, bytes(limit + 1))
    assert references.find(owned(2)) is other
    for _ in range(MIN_MEMBERS):
        references.count(raw)
    assert references.find(raw) not in {None, group}
