"""Checks of keywords and of seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, Unpack
from unittest.mock import AsyncMock, create_autospec

import pytest

from aioinformer import Client, ResourceApi, SharedInformer, SharedInformerFactory
from aioinformer._core.arguments import (
    MAX_MANAGER_LENGTH,
    check_bool,
    check_field_manager,
    check_int,
    check_names,
    check_seconds,
    check_text,
    suggest_keyword,
    suggest_keywords,
)
from aioinformer.testing import Cluster, ClusterSource


@suggest_keywords
def add(number: int, *, factor: int = 1) -> int:
    """Multiply."""
    return number * factor


def test_a_decorated_function_works_and_keeps_its_documentation() -> None:
    assert add(2, factor=3) == add(number=2, factor=3) == 6
    assert (add.__name__, add.__doc__) == ("add", "Multiply.")


def test_a_misspelt_keyword_is_corrected() -> None:
    wrong: dict[str, int] = {"facter": 3}
    unlike: dict[str, int] = {"x": 3}
    with pytest.raises(TypeError, match=r"add\(\) has no argument 'facter'; did you mean 'factor'"):
        add(2, **wrong)
    with pytest.raises(TypeError, match=r"add\(\) has no argument 'x'$"):
        add(2, **unlike)


def test_only_names_of_options_pass_and_all_names_are_suggested() -> None:
    check_names(["resync"], ["resync", "page_size"])
    with pytest.raises(TypeError, match="no option 'resinc'; did you mean 'resync'"):
        check_names(["resync", "resinc"], ["resync", "page_size"])
    with pytest.raises(TypeError, match="no option 'namespce'; did you mean 'namespace'"):
        check_names(["namespce"], ["resync"], "namespace")
    with pytest.raises(TypeError, match="no option 'namespace'"):
        check_names(["namespace"], ["resync"], "namespace")


@pytest.mark.parametrize("seconds", [1, 0.5, float("inf")])
def test_positive_numbers_are_seconds(seconds: float) -> None:
    check_seconds("timeout", seconds)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_numbers_out_of_range_are_errors(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"timeout must be seconds, or None .*, not {seconds:g}"):
        check_seconds("timeout", seconds)


@pytest.mark.parametrize("seconds", ["60", True, None])
def test_other_types_are_errors(seconds: object) -> None:
    with pytest.raises(TypeError, match=f"resync must be seconds, or 0 for never, not {seconds!r}"):
        check_seconds("resync", seconds, zero="never")


def test_zero_is_allowed_where_it_has_a_meaning() -> None:
    check_seconds("resync", 0, zero="never")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("label_selector", "labels"),
        ("labelSelector", "labels"),
        ("selector", "labels"),
        ("field_selector", "fields"),
        ("ns", "namespace"),
        ("limit", "page_size"),
    ],
)
def test_names_of_other_clients_are_translated(given: str, meant: str) -> None:
    options = ["labels", "fields", "namespace", "page_size", "field_manager"]
    with pytest.raises(TypeError, match=f"no option {given!r}; did you mean {meant!r}"):
        check_names([given], options)


class Store:
    """Has a decorated constructor and a decorated method."""

    @suggest_keywords
    def __init__(self, size: int = 1) -> None:
        """Keep the size."""
        self.size = size

    @suggest_keywords
    def resize(self, size: int) -> None:
        """Change the size."""
        self.size = size


def test_the_error_of_a_constructor_names_the_class() -> None:
    wrong: dict[str, int] = {"siez": 3}
    with pytest.raises(
        TypeError, match=r"^Store\(\) has no argument 'siez'; did you mean 'size'\?$"
    ):
        Store(**wrong)
    with pytest.raises(
        TypeError, match=r"^resize\(\) has no argument 'siez'; did you mean 'size'\?$"
    ):
        Store(size=2).resize(**wrong)


def test_a_function_is_decorated_at_any_place() -> None:
    def scale(number: int, *, factor: int = 1) -> int:
        return number * factor

    class Shelf:
        def __init__(self, width: int) -> None:
            self.width = width

        def widen(self, width: int) -> None:
            self.width = width

    checked = suggest_keywords(scale)
    assert checked(2, factor=3) == checked(number=2, factor=3) == 6
    create, widen = suggest_keywords(Shelf.__init__), suggest_keywords(Shelf.widen)
    shelf = Shelf(1)
    create(shelf, width=2)
    assert shelf.width == 2
    widen(shelf, width=3)
    assert shelf.width == 3
    outermost = suggest_keywords(len)  # its qualified name has one part
    calls: list[tuple[Callable[..., object], tuple[object, ...], str, str]] = [
        (checked, (2,), "scale", "factro"),
        (create, (shelf,), "Shelf", "widht"),
        (widen, (shelf,), "widen", "widht"),
        (outermost, ([],), "len", "xyz"),
    ]
    for call, arguments, name, keyword in calls:
        wrong: dict[str, int] = {keyword: 3}
        with pytest.raises(TypeError) as caught:
            call(*arguments, **wrong)
        meant = {"factro": "factor", "widht": "width"}.get(keyword)
        suggestion = f"; did you mean {meant!r}?" if meant else ""
        assert str(caught.value) == f"{name}() has no argument {keyword!r}{suggestion}"


@pytest.mark.parametrize(
    ("name", "names", "suggestion"),
    [
        ("Label_Selector", ["labels"], "; did you mean 'labels'?"),
        ("label_selector", ["label_selectors"], "; did you mean 'label_selectors'?"),
        ("count", ["counts", "shards"], "; did you mean 'shards'?"),
        ("xyz", ["labels"], ""),
    ],
)
def test_the_name_of_another_client_comes_before_a_similar_one(
    name: str, names: list[str], suggestion: str
) -> None:
    assert suggest_keyword(name, iter(names)) == suggestion


@pytest.mark.parametrize("value", ["false", 0, 1, None])
def test_only_true_and_false_are_booleans(value: object) -> None:
    check_bool("resync", True)
    check_bool("resync", False)
    with pytest.raises(TypeError) as caught:
        check_bool("resync", value)
    assert str(caught.value) == f"resync must be True or False, not {value!r}"


@pytest.mark.parametrize("value", [True, 1.0, "8", None])
def test_only_integers_are_whole_numbers(value: object) -> None:
    check_int("concurrency", 8)
    with pytest.raises(TypeError) as caught:
        check_int("concurrency", value)
    assert str(caught.value) == f"concurrency must be a whole number, not {value!r}"


def test_seconds_out_of_range_are_named_with_the_meaning_of_zero() -> None:
    with pytest.raises(ValueError, match=r"^resync must be seconds, or 0 for never, not -1$"):
        check_seconds("resync", -1, zero="never")


@pytest.mark.parametrize("text", ["", " ", "a\n", "abcd", "\u200b"])
def test_a_text_out_of_range_is_an_error_that_shows_the_limit(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check_text("name", text, longest=3)
    assert str(caught.value) == (
        f"name must be 1 to 3 printable characters, such as 'shop', not {text!r}"
    )


def test_a_text_within_the_limit_passes() -> None:
    check_text("name", "abc", longest=3)
    with pytest.raises(TypeError, match=r"^name must be text, not b'abc'$"):
        check_text("name", b"abc", longest=3)


def test_a_field_manager_has_the_limit_of_the_server() -> None:
    check_field_manager("field_manager", "m" * MAX_MANAGER_LENGTH)
    with pytest.raises(ValueError, match=r"^field_manager must be 1 to 128 printable"):
        check_field_manager("field_manager", "m" * (MAX_MANAGER_LENGTH + 1))


class Sizes(TypedDict, total=False):
    width: int
    height: int


class Drawer:
    @suggest_keywords
    def open(self, *, speed: int = 1) -> int:
        return speed

    @suggest_keywords
    def fill(self, name: str, /, *, count: int = 1, **sizes: Unpack[Sizes]) -> int:
        return count + len(sizes)


def test_an_argument_that_needs_its_name_is_an_error_that_lists_the_names() -> None:
    drawer = Drawer()
    assert drawer.open(speed=2) == 2
    assert drawer.fill("a", count=3, width=1) == 4
    calls: list[tuple[Callable[..., object], tuple[object, ...], str]] = [
        (
            drawer.open,
            ("fast",),
            "open() needs the name of the argument, such as speed=",
        ),
        (
            drawer.fill,
            ("a", 3),
            "fill() needs the name of the argument, such as width=, height=, count=",
        ),
        (add, (1, 2), "add() needs the name of the argument, such as factor="),
    ]
    for call, arguments, text in calls:
        with pytest.raises(TypeError) as caught:
            call(*arguments)
        assert str(caught.value) == text


async def test_a_selection_without_a_name_is_an_error_that_says_what_to_write() -> None:
    source: Any = ClusterSource(Cluster())
    async with SharedInformerFactory(source) as informers, Client("http://127.0.0.1:1") as client:
        factory: Any = informers
        opened: Any = client
        pods: Any = informers.informer("pods")
        api: Any = client.api("pods")
        selection = "labels=, namespace=, fields=, where="
        for call, names in (
            (pods.lister.list, selection),
            (pods.lister.scan, selection),
            (pods.lister.count, selection),
            (partial(factory.informer, "pods"), "namespace=, namespaces=, labels="),
            (partial(factory.use, "pods"), "namespace=, namespaces=, labels="),
            (partial(opened.api, "pods"), "namespace="),
            (api.list, "labels=, fields="),
            (api.pages, "labels=, fields="),
            (partial(api.watch, "1"), "labels=, fields="),
            (partial(pods.wait_for, {}), "timeout="),
            (partial(pods.wait_until, "a", bool), "timeout="),
            (partial(pods.wait_until_all, bool), "namespace=, labels="),
        ):
            with pytest.raises(TypeError, match=f"needs the name of the argument, such as {names}"):
                await call("shop")


def test_async_methods_with_suggestions_are_async_for_mocks_of_their_class() -> None:
    pods: Any = create_autospec(SharedInformer, instance=True)
    api: Any = create_autospec(ResourceApi, instance=True)
    for method in (pods.wait_for, pods.wait_until, pods.wait_until_all, api.list):
        assert isinstance(method, AsyncMock)
