"""Exercises of other clients: what each does against a server, and the table in the guide.

An exercise is a function that uses one client as its users do, and asserts the results. The same
exercise runs against the embedded server and against a real API server, which is the judge: where
an exercise fails there, the exercise is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

__all__ = [
    "CLIENTS",
    "COLLECTION",
    "EXERCISES",
    "GROUP",
    "LISTS",
    "OBJECTS",
    "PATCHES",
    "PLURAL",
    "VERSION",
    "WATCHES",
    "Exercise",
    "Target",
    "exercise",
    "format_table",
    "gadget",
]

GROUP, VERSION, PLURAL = "example.com", "v1", "gadgets"

OBJECTS = "create, get, update, delete"
LISTS = "list, pages, selectors"
PATCHES = "patch, apply, status"
WATCHES = "watch"
COLLECTION = "delete collection"
COLUMNS = (OBJECTS, LISTS, PATCHES, WATCHES, COLLECTION)
"""The operations with a column of their own in the table. Each client has further ones."""


CLIENTS = (
    "kubectl",
    "client-go",
    "kubernetes",
    "kubernetes.aio",
    "kubernetes_asyncio",
    "lightkube",
    "kr8s",
    "pykube-ng",
    "kopf",
)
"""The clients in the order of the table."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server of an exercise, and the namespace that the exercise has for itself."""

    kubeconfig: Path
    namespace: str
    go_binary: Path | None = None
    """kubectl and the exercises of client-go, for those who use them."""

    @property
    def where(self) -> dict[str, str]:
        """The arguments that name the collection, as clients of custom objects take them."""
        return {
            "group": GROUP,
            "version": VERSION,
            "plural": PLURAL,
            "namespace": self.namespace,
        }


Run: TypeAlias = Callable[[Target], None]


@dataclass(frozen=True, slots=True)
class Exercise:
    """One client and one thing that it does."""

    client: str
    operation: str
    run: Run
    built_in: bool = False
    """True if the exercise needs built-in resources, which the real server of the tests lacks."""

    @property
    def namespace(self) -> str:
        """A namespace that no other exercise uses."""
        letters = (char if char.isalnum() else "-" for char in f"{self.client}-{self.operation}")
        return "-".join(filter(None, "".join(letters).lower().split("-")))

    def __str__(self) -> str:
        return f"{self.client}: {self.operation}"


EXERCISES: list[Exercise] = []
"""All exercises. The modules of exercises fill the list."""


def exercise(client: str, operation: str, *, built_in: bool = False) -> Callable[[Run], Run]:
    """Return a decorator that registers a function as an exercise."""

    def register(run: Run) -> Run:
        EXERCISES.append(Exercise(client, operation, run, built_in))
        return run

    return register


def gadget(name: str, size: int = 1, *, app: str = "shop") -> dict[str, Any]:
    """Return a gadget to write."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Gadget",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"size": size},
    }


def format_table() -> str:
    """Return the table of the guide: a line for each client."""
    lines = [
        f"| client | {' | '.join(COLUMNS)} | also |",
        f"|{'---|' * (len(COLUMNS) + 2)}",
    ]
    for client in CLIENTS:
        own = [each for each in EXERCISES if each.client == client]
        done = {each.operation for each in own}
        cells = ["yes" if column in done else "" for column in COLUMNS]
        also = ", ".join(
            each.operation + "*" * each.built_in for each in own if each.operation not in COLUMNS
        )
        lines.append(f"| {client} | {' | '.join(cells)} | {also} |")
    return "".join(f"{line}\n" for line in lines)
