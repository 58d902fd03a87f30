"""The selection of several namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Scope, labelled
from aioinformer._core.selectors.scopes import Namespaces, NamespaceSelection
from aioinformer.errors import InvalidSelector, UsageError


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
