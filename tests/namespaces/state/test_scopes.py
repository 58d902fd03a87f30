"""The selection of several namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Scope, labelled
from aioinformer.errors import InvalidSelector, UsageError
from aioinformer.namespaces.state.scopes import Namespaces, NamespaceSelection


def parse(namespaces: Namespaces, *, labels: str = "", fields: str = "") -> NamespaceSelection:
    return NamespaceSelection.parse(namespaces, labels=labels, fields=fields)


def test_equal_selections_are_equal_however_they_are_written() -> None:
    assert parse(["b", "a", "b"]) == parse({"a": Scope(), "b": Scope()}) == parse(iter(["a", "b"]))
    assert hash(parse(["a"])) == hash(parse({"a": Scope()}))
    assert parse(["a"]) != parse({"a": Scope(optional=True)})
    assert Scope(labels="a=1, b=2") == Scope(labels={"a": "1", "b": "2"})
    assert parse(labelled("team=shop")) == parse(labelled({"team": "shop"}))
    assert parse(labelled("team=shop")) != parse(labelled("team=cart"))


def test_a_namespace_has_the_selectors_of_the_informer_unless_it_has_its_own() -> None:
    scopes = {"a": Scope(labels="own=1", optional=True), "b": Scope(fields="metadata.name=x")}
    assert dict(parse(scopes, labels="app=shop", fields="metadata.name=y").scopes) == {
        "a": Scope(labels="own=1", fields="metadata.name=y", optional=True),
        "b": Scope(labels="app=shop", fields="metadata.name=x"),
    }


@pytest.mark.parametrize(
    ("namespaces", "text"),
    [
        ([], "0 namespaces"),
        (["b", "a"], "a, b"),
        (["a", "b", "c", "d"], "4 namespaces"),
        (labelled("team=shop"), "namespaces labelled('team=shop')"),
    ],
    ids=str,
)
def test_the_text_is_short_and_bounded(namespaces: Namespaces, text: str) -> None:
    assert str(parse(namespaces)) == text


def test_mistakes_are_named() -> None:
    with pytest.raises(TypeError, match="not 'shop'; for one namespace pass namespace="):
        parse("shop")
    with pytest.raises(TypeError, match="not None"):
        parse(None)  # type: ignore[arg-type]  # a program without a type checker
    with pytest.raises(TypeError, match="is a text, not b'a'"):
        parse([b"a"])  # type: ignore[list-item]  # the same
    with pytest.raises(TypeError, match="not 'app=shop'"):
        parse({"a": "app=shop"})
    with pytest.raises(UsageError, match="ALL_NAMESPACES"):
        parse(["a", ""])
    with pytest.raises(InvalidSelector):
        Scope(labels="a in (")


def test_followed_namespaces_have_one_scope() -> None:
    shop = labelled("team=shop")
    scope = Scope(labels="app=shop", optional=True)
    selection = parse({shop: scope})
    assert (selection.predicate, selection.default) == (shop, scope)
    assert selection == parse({labelled({"team": "shop"}): scope})
    assert selection != parse(shop)
    assert parse({shop: Scope()}) == parse(shop)
    with_defaults = NamespaceSelection.parse(
        {shop: Scope(optional=True)}, labels="app=shop", fields=""
    )
    assert with_defaults == selection


def test_a_predicate_beside_other_keys_is_rejected() -> None:
    shop = labelled("team=shop")
    mixed: dict[Any, Any] = {"a": Scope(), shop: Scope()}
    selector: dict[Any, Any] = {shop: "app=shop"}
    with pytest.raises(UsageError, match=r"has labelled\('team=shop'\) and other keys"):
        parse(mixed)
    with pytest.raises(UsageError, match=r"combine two with \|"):
        parse({shop: Scope(), labelled("team=cart"): Scope()})
    with pytest.raises(TypeError, match="needs a Scope, such as"):
        parse(selector)


@pytest.mark.parametrize(
    ("namespaces", "text"),
    [(["a"], "a"), (["c", "a", "b"], "a, b, c"), (["d", "c", "b", "a"], "4 namespaces")],
)
def test_up_to_three_namespaces_are_named(namespaces: list[str], text: str) -> None:
    assert str(parse(namespaces)) == text


def test_a_scope_has_its_selectors_as_texts() -> None:
    scope = Scope(labels={"b": "2", "a": "1"}, fields={"metadata.name": "x"})

    assert (scope.labels, scope.label_selector) == ("a=1,b=2", "a=1,b=2")
    assert (scope.fields, scope.field_selector) == ("metadata.name=x", "metadata.name=x")
    assert Scope() == Scope(labels="", fields="", optional=False)


@pytest.mark.parametrize(
    ("own", "default", "merged"),
    [
        (Scope(), Scope(labels="a=1", fields="b=2"), Scope(labels="a=1", fields="b=2")),
        (Scope(labels="c=3"), Scope(fields="b=2"), Scope(labels="c=3", fields="b=2")),
        (Scope(fields="d=4"), Scope(labels="a=1"), Scope(labels="a=1", fields="d=4")),
        (Scope(optional=True), Scope(labels="a=1"), Scope(labels="a=1", optional=True)),
        (Scope(), Scope(optional=True), Scope()),
    ],
)
def test_only_missing_selectors_come_from_the_defaults(
    own: Scope, default: Scope, merged: Scope
) -> None:
    assert own.with_defaults(default) == merged


def test_a_selection_by_names_has_the_selectors_of_the_informer() -> None:
    selection = parse(["b", "a"], labels="app=shop", fields="metadata.name=x")
    default = Scope(labels="app=shop", fields="metadata.name=x")

    assert selection == NamespaceSelection((("a", default), ("b", default)), None, default)


def test_a_selection_by_a_predicate_has_the_selectors_of_the_informer() -> None:
    shop = labelled("team=shop")
    default = Scope(labels="app=shop", fields="metadata.name=x")

    assert parse(shop, labels="app=shop", fields="metadata.name=x") == NamespaceSelection(
        (), shop, default
    )


def test_a_predicate_behind_other_keys_is_found() -> None:
    mixed: dict[Any, Any] = {"a": Scope(), "b": Scope(), labelled("team=shop"): Scope()}
    with pytest.raises(UsageError) as caught:
        parse(mixed)
    assert str(caught.value) == (
        "namespaces= has labelled('team=shop') and other keys; an informer follows the namespaces "
        "of one predicate (combine two with |) or reads namespaces by name: make an informer for "
        "each"
    )
