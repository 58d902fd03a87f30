"""``User`` and ``PolicyRule``: the user of a request, and the requests that a user may send."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity

ALL = "*"
MASTERS = "system:masters"
"""The group whose members may send every request."""
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
"""The groups of requests with credentials, and of requests without any."""
NODES = "system:nodes"
"""The group of the kubelets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAttributes:
    """The part of a request that decides about access (apiserver's ``RequestInfo``)."""

    verb: str
    resource: Resource | None = None
    """``None`` for a path that names no object, such as ``/version``."""
    part: str = ""
    """The subresource; empty for the object itself."""
    namespace: str = ""
    """Empty for all namespaces, and for resources without namespaces."""
    name: str = ""
    path: str = ""
    """The path of the URL, if ``resource`` is ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """Requests that a user may send, as a rule of a Role.

    ::

        PolicyRule(verbs=["list"], resources=["pods"])                     # a list-only ClusterRole
        PolicyRule(verbs=["get", "list", "watch"], resources=["deployments.apps"],
                   namespaces=["web"])                                     # a Role in ``web``

    A rule for a namespace doesn't allow requests for all namespaces, as on a real server.
    """

    verbs: Collection[str]
    """``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``,
    ``deletecollection``, ``impersonate`` (of ``users``, ``groups``, ``serviceaccounts``), or ``*``
    for all."""
    resources: Collection[str] = (ALL,)
    """Names in any form, ``NAME/SUBRESOURCE`` for a subresource, ``*`` for all of both."""
    namespaces: Collection[str] | None = None
    """The namespaces; ``None`` for all of them and for resources without namespaces."""
    names: Collection[str] = ()
    """The names of the objects; empty for all."""

    def __post_init__(self) -> None:
        for field in ("verbs", "resources", "namespaces", "names"):
            if isinstance(getattr(self, field), str):
                raise TypeError(
                    f"{field} of a PolicyRule is a collection of texts, such as "
                    f"[{getattr(self, field)!r}], not a text"
                )


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


class User:
    """A user: a name, groups, and rules that a test can change at any time.

    A request is allowed if one of ``rules`` allows it, or a Role or ClusterRole that a binding in
    the cluster gives to the user or to one of the groups. Members of ``system:masters`` may send
    every request.
    """

    def __init__(
        self, name: str, *, groups: Iterable[str] = (), rules: Iterable[PolicyRule] = ()
    ) -> None:
        """Make a user, such as ``ada`` or ``system:serviceaccount:web:default``.

        ``groups`` are those besides ``system:authenticated``.
        """
        self.name = name
        self.groups: tuple[str, ...] = (*groups, AUTHENTICATED)
        self.rules: list[PolicyRule] = list(rules)
        """A change concerns the next request; open watches go on."""
        self.unrestricted = MASTERS in self.groups
        """True if the user may send every request."""
        self.uid = ""
        """The uid of a service account, or of an impersonated user; empty for others."""
        self.extra: Mapping[str, Collection[str]] = {}
        """The extra values of an impersonated user."""

    def __repr__(self) -> str:
        return f"<User {self.name} {quantity(len(self.rules), 'rule')}>"
