"""Comparisons of a cache with the server."""

from __future__ import annotations

import pytest

from aioinformer import KubeObject
from aioinformer._core.objects.deltas import Correction, CorrectionGuard
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer.verification.state.verification import Comparison, Verification
from tests.core.builders import key, make_object, pod, pod_body

A, B, C = pod("a", rv="1"), pod("b", rv="2"), pod("c", rv="3")


def comparing(
    *objects: KubeObject, rejected: tuple[str, ...] = (), contents: bool = False
) -> Comparison:
    rejected_keys = frozenset(map(key, rejected))
    held = {obj.key: obj for obj in objects}
    return Comparison(held, "10", rejected=rejected_keys, contents=contents)


def result(comparison: Comparison, *objects: KubeObject) -> Verification:
    for obj in objects:
        comparison.add_server_object(obj)
    while not comparison.step(1):
        pass
    return comparison.close()


def test_equal_states_agree() -> None:
    found = result(comparing(A, B), pod("b", rv="2"), pod("a", rv="1"))

    assert found
    assert found.differences == {}
    assert str(found) == "the cache agrees with the server: 2 objects at resourceVersion 10"


def test_each_difference_is_listed_with_its_key() -> None:
    found = result(
        comparing(A, B, C, pod("e")),
        pod("a", rv="1", uid="another"),
        pod("b", rv="9"),
        pod("d", rv="4"),
        pod("e"),
    )

    assert not found
    assert found.differences == {
        key("a"): "uid",
        key("b"): "version",
        key("d"): "missing",
        key("c"): "surplus",
    }
    assert str(found) == (
        "the cache differs in 4 of 4 objects at resourceVersion 10: "
        "web/a (uid), web/b (version), web/d (missing), web/c (surplus)"
    )


def test_contents_are_compared_on_request() -> None:
    other = pod("a", rv="1", node="elsewhere")
    assert result(comparing(A), other)
    assert result(comparing(A, contents=True), other).differences == {key("a"): "content"}
    assert result(comparing(A, contents=True), pod("a", rv="1"))


def test_contents_are_not_compared_by_default() -> None:
    comparison = Comparison({A.key: A}, "10")
    assert result(comparison, pod("a", rv="1", node="elsewhere"))


def test_the_kind_that_items_of_a_list_lack_is_no_difference() -> None:
    """Recordings 10 and 30: events of a watch have it."""
    watched = make_object({"kind": "Pod", "apiVersion": "v1"} | pod_body("a"))
    assert result(comparing(watched, contents=True), pod("a"))


def test_rejected_objects_are_left_out_and_counted() -> None:
    """The cache keeps their previous version, or nothing."""
    found = result(comparing(A, B, rejected=("a", "b", "z")), pod("a", rv="9"), pod("z"))

    assert found
    assert found.rejected == 2
    assert "2 rejected ones left out" in str(found)


def test_the_text_shows_a_few_of_many_differences() -> None:
    found = result(comparing(), *(pod(f"p{number}") for number in range(9)))
    assert str(found).endswith("web/p4 (missing), ...")
    assert "differs in 9 of 9" in str(found)


@pytest.mark.parametrize(("count", "end"), [(5, "(missing)"), (6, "(missing), ...")])
def test_five_differences_are_written_out(count: int, end: str) -> None:
    found = result(comparing(), *(pod(f"p{number}") for number in range(count)))
    text = str(found)
    assert text.endswith(end)
    assert text.count("(missing)") == 5


def test_the_number_of_repaired_differences_ends_the_text() -> None:
    text = str(Verification("10", 1, {key("a"): "missing"}, rejected=2, repaired=1))
    assert text == (
        "the cache differs in 1 of 1 object at resourceVersion 10, 2 rejected ones left out: "
        "web/a (missing); 1 repaired"
    )


def test_an_object_that_the_transform_drops_is_no_object_of_the_server() -> None:
    found = result(comparing(A), ExcludedObject.of(A, None))

    assert (found.objects, found.rejected) == (0, 0)
    assert found.differences == {key("a"): "surplus"}


def test_an_object_that_the_transform_fails_on_counts_as_rejected() -> None:
    found = result(comparing(A, B), ExcludedObject.of(A, ValueError("broken")), pod("b", rv="2"))

    assert (found.objects, found.rejected, found.differences) == (2, 1, {})


def test_each_difference_has_a_correction_if_there_is_a_guard() -> None:
    guard = CorrectionGuard()
    held = {obj.key: obj for obj in (A, B)}
    comparison = Comparison(held, "10", guard=guard, contents=True)
    other, missing = pod("a", rv="1", node="elsewhere"), pod("d", rv="4")

    found = result(comparison, other, missing)

    assert list(found.differences.values()) == ["content", "missing", "surplus"]
    assert comparison.corrections == [
        Correction(key("a"), A, other, guard),
        Correction(key("d"), None, missing, guard),
        Correction(key("b"), B, None, guard),
    ]


def test_a_comparison_without_a_guard_has_no_corrections() -> None:
    comparison = comparing(A)
    result(comparison, pod("a", rv="9"))
    assert comparison.corrections == []


def test_a_step_counts_a_limited_number_of_surplus_objects() -> None:
    comparison = comparing(A, B, C)

    assert not comparison.step(2)
    assert repr(comparison) == "<Comparison rv=10 compared=0 left=1>"
    assert comparison.step(2)
    assert set(comparison.close().differences.values()) == {"surplus"}


@pytest.mark.parametrize("seen", [0, 2])
def test_the_repr_shows_how_far_it_is(seen: int) -> None:
    comparison = comparing(A, B, C)
    for obj in (A, B)[:seen]:
        comparison.add_server_object(obj)
    assert repr(comparison) == f"<Comparison rv=10 compared={seen} left={3 - seen}>"


def test_the_results_of_several_namespaces_are_one_result() -> None:
    first = Verification("10", 3, {key("a"): "missing"}, rejected=1, repaired=1)
    second = Verification("9", 4, {key("b"): "surplus"})
    assert Verification.merge([first, second]) == Verification(
        "9", 7, {key("a"): "missing", key("b"): "surplus"}, rejected=1, repaired=1
    )
    assert Verification.merge([first]) is first
    assert Verification.merge([]) == Verification("", 0)


def test_results_with_versions_that_are_no_numbers_have_no_common_version() -> None:
    first, second = Verification("a9", 3, {}), Verification("b10", 4, {})
    assert Verification.merge([first, second]).resource_version == ""
