"""The form of a kubeconfig: the type of each field that kubectl reads.

As kubectl does, the whole file is checked, also the parts that no context uses. Fields that are
null count as absent, and unknown fields are ignored.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""The lists of a kubeconfig, and the key of an item's content in each."""

Form: TypeAlias = "type[str] | type[bool] | list[Any] | dict[str, Any]"
"""``str``, ``bool``, a list with the form of its items, or a mapping with that of its fields."""

ANY_KEY = "*"
"""Stands for each key of a mapping whose keys are free. Errors don't show these."""

_EXTENSIONS: Form = [{"name": str}]
_CLUSTER: Form = {
    "server": str,
    "tls-server-name": str,
    "insecure-skip-tls-verify": bool,
    "certificate-authority": str,
    "certificate-authority-data": str,
    "proxy-url": str,
    "disable-compression": bool,
    "extensions": _EXTENSIONS,
}
_EXEC: Form = {
    "command": str,
    "args": [str],
    "env": [{"name": str, "value": str}],
    "apiVersion": str,
    "installHint": str,
    "provideClusterInfo": bool,
    "interactiveMode": str,
}
_USER: Form = {
    "client-certificate": str,
    "client-certificate-data": str,
    "client-key": str,
    "client-key-data": str,
    "token": str,
    "tokenFile": str,
    "as": str,
    "as-uid": str,
    "as-groups": [str],
    "as-user-extra": {ANY_KEY: [str]},
    "username": str,
    "password": str,
    "auth-provider": {"name": str, "config": {ANY_KEY: str}},
    "exec": _EXEC,
    "extensions": _EXTENSIONS,
}
_CONTEXT: Form = {"cluster": str, "user": str, "namespace": str, "extensions": _EXTENSIONS}
KUBECONFIG: Form = {
    "kind": str,
    "apiVersion": str,
    "preferences": {"colors": bool, "extensions": _EXTENSIONS},
    "clusters": [{"name": str, "cluster": _CLUSTER}],
    "users": [{"name": str, "user": _USER}],
    "contexts": [{"name": str, "context": _CONTEXT}],
    "current-context": str,
    "extensions": _EXTENSIONS,
}

_DESCRIPTIONS: dict[type, str] = {
    str: "a text",
    bool: "true or false, without quotes",
    list: "a list",
    dict: "a mapping",
}


def find_fault(content: object) -> str:
    """Return the first fault of a kubeconfig's content, without its values; empty for none."""
    if not isinstance(content, dict):
        return " is not a YAML mapping, as a kubeconfig must be; is it the right file?"
    config = cast("dict[str, Any]", content)
    if fault := _find_type_fault(config, KUBECONFIG):
        place, problem = fault
        return _describe_place(config, place, problem)
    version, kind = config.get("apiVersion") or "v1", config.get("kind") or "Config"
    if (version, kind) != ("v1", "Config"):
        return " is not a kubeconfig: its apiVersion and kind must be v1 and Config"
    for section in SECTIONS:
        names: set[str] = set()
        for position, item in enumerate(config.get(section) or ()):
            if (name := (item or {}).get("name")) is None:
                return f" is not a kubeconfig: {section}[{position}] has no name"
            if name in names:
                return f" is not a kubeconfig: two {section} have the name {name!r}: rename one"
            names.add(name)
    return ""


_Place: TypeAlias = "tuple[str | int, ...]"


def _find_type_fault(value: Any, form: Form) -> tuple[_Place, str] | None:
    """Return the place of the first value of a wrong type, and what it must be."""
    wanted = form if isinstance(form, type) else type(form)
    if not isinstance(value, wanted):
        quote = wanted is str and not isinstance(value, list | dict)
        return (), f"must be {_DESCRIPTIONS[wanted]}{': put it in quotes' if quote else ''}"
    for key, part, part_form in _parts(value, form):
        if part is None and not (part_form is str and isinstance(form, list)):
            continue
        if (fault := _find_type_fault(part, part_form)) is not None:
            place, problem = fault
            return (key, *place), problem
    return None


def _parts(value: Any, form: Form) -> list[tuple[str | int, Any, Form]]:
    if isinstance(form, list):
        return [(position, each, form[0]) for position, each in enumerate(value)]
    if not isinstance(form, dict):
        return []
    if ANY_KEY in form:
        return [(ANY_KEY, each, form[ANY_KEY]) for each in value.values()]
    return [(key, value.get(key), each) for key, each in form.items()]


def _describe_place(config: dict[str, Any], place: _Place, problem: str) -> str:
    """Name the field and its owner, such as ``password of user 'main'``."""
    section = str(place[0])
    if section in SECTIONS and place[2:3] == (SECTIONS[section],):
        name = config[section][place[1]].get("name")
        owner = f"{section}[{place[1]}]" if name is None else f"{SECTIONS[section]} {name!r}"
        shown = f"{_join(place[3:])} of {owner}" if place[3:] else owner
        return f": {shown} {problem}"
    return f" is not a kubeconfig: {_join(place)} {problem}"


def _join(place: _Place) -> str:
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
    return text.removeprefix(".")
