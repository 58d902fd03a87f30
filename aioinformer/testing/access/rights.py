"""The decision about a request: the user's own rules, then the RBAC objects of the cluster.

Roles, ClusterRoles and their bindings are read at each request, so that a test restricts a program
with the manifests that the program is installed with. Aggregated ClusterRoles are as they are
stored: no controller fills them in here. Source: kubernetes' RBAC authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from aioinformer.errors import ServerError
from aioinformer.testing.access.users import (
    ALL,
    AUTHENTICATED,
    UNAUTHENTICATED,
    PolicyRule,
    RequestAttributes,
    User,
)
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses

Rule: TypeAlias = Mapping[str, Any]
"""A rule of a Role, as JSON."""

_PUBLIC_PATHS = ("/livez", "/readyz", "/healthz", "/version", "/version/")
_DISCOVERY_PATHS = ("/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*")
_PUBLIC_INFO_VIEWER = {"verbs": ["get"], "nonResourceURLs": [*_PUBLIC_PATHS]}
_DISCOVERY = {"verbs": ["get"], "nonResourceURLs": [*_PUBLIC_PATHS, *_DISCOVERY_PATHS]}
_BASIC_USER = (
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
)
_DEFAULT_RULES: Mapping[str, Sequence[Rule]] = {
    AUTHENTICATED: (_DISCOVERY, *_BASIC_USER),
    UNAUTHENTICATED: (_PUBLIC_INFO_VIEWER,),
}
"""The rules that a new cluster binds to the groups of all requests."""
FULL_AUTHORITY: Sequence[Rule] = (
    {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
    {"verbs": [ALL], "nonResourceURLs": [ALL]},
)
ROLE_KINDS: Mapping[str, str] = {"Role": "roles", "ClusterRole": "clusterroles"}
"""The kinds that a ``roleRef`` can have, and their resources."""
_SERVICE_ACCOUNT = "system:serviceaccount"


def is_allowed(cluster: Cluster, user: User, attributes: RequestAttributes) -> bool:
    right = _wanted_right(attributes)
    return user.unrestricted or any(
        gives(rule, right) for rule in held_rules(cluster, user, attributes.namespace)
    )


def check_access(cluster: Cluster, user: User, attributes: RequestAttributes) -> None:
    """Raise ``Forbidden`` if a user may not send a request."""
    if not is_allowed(cluster, user, attributes):
        raise forbidden_error(user, attributes)


def forbidden_error(user: User, attributes: RequestAttributes) -> ServerError:
    if attributes.resource is None:
        return statuses.forbidden_path(attributes.verb, attributes.path, user.name)
    return statuses.forbidden(
        attributes.verb,
        attributes.resource,
        attributes.namespace,
        name=attributes.name,
        part=attributes.part,
        user=user.name,
    )


# -- RBAC objects ------------------------------------------------------------------------------


def held_rules(cluster: Cluster, user: User, namespace: str) -> Iterator[Rule]:
    """Yield the rules of a user, and those that bindings give, in a namespace and everywhere."""
    for rule in user.rules:
        if rule.namespaces is None or namespace in rule.namespaces:
            yield from _convert(cluster, rule)
    for group, rules in _DEFAULT_RULES.items():
        if group in user.groups:
            yield from rules
    for binding in cluster.objects("clusterrolebindings"):
        if _binds(binding, user):
            yield from _role_rules(cluster, binding, "")
    if namespace:
        for binding in cluster.objects("rolebindings", namespace=namespace):
            if _binds(binding, user):
                yield from _role_rules(cluster, binding, namespace)


def _convert(cluster: Cluster, rule: PolicyRule) -> Iterator[Rule]:
    """Yield the rules of a Role for a rule that has the names of resources in any form."""
    for text in rule.resources:
        name, slash, part = text.partition("/")
        name = name.lower()
        plural, _, group = name.partition(".")
        served = [each.resource for each in cluster.served if name in each.resource.names()]
        for target in dict.fromkeys((each.group, each.plural) for each in served) or (
            (group or ALL, plural),
        ):
            yield {
                "verbs": list(rule.verbs),
                "apiGroups": [target[0]],
                "resources": [f"{target[1]}{slash}{part}"],
                **({"resourceNames": list(rule.names)} if rule.names else {}),
            }


def _binds(binding: Mapping[str, Any], user: User) -> bool:
    return any(_is_subject(each, binding, user) for each in binding.get("subjects") or ())


def _is_subject(subject: Mapping[str, Any], binding: Mapping[str, Any], user: User) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
            return user.name == f"{_SERVICE_ACCOUNT}:{namespace}:{name}"
        case _:
            return False


def _role_rules(cluster: Cluster, binding: Mapping[str, Any], namespace: str) -> Iterable[Rule]:
    role = find_role(cluster, binding.get("roleRef") or {}, namespace)
    return (role or {}).get("rules") or ()


def find_role(
    cluster: Cluster, reference: Mapping[str, Any], namespace: str
) -> Mapping[str, Any] | None:
    """Return the role of a ``roleRef`` of a binding in ``namespace``, which is empty for a
    ClusterRoleBinding, or ``None``.
    """
    kind, name = reference.get("kind", ""), str(reference.get("name", ""))
    if kind == "ClusterRole":
        return cluster.find_object("clusterroles", name)
    if kind == "Role" and namespace:
        return cluster.find_object("roles", name, namespace=namespace)
    return None


class Right(NamedTuple):
    """One verb on one resource, such as ``pods/log``, or on a path."""

    verb: str
    group: str = ""
    resource: str = ""
    """Empty for a path."""
    name: str = ""
    path: str = ""


def _wanted_right(attributes: RequestAttributes) -> Right:
    resource, part = attributes.resource, attributes.part
    if resource is None:
        return Right(attributes.verb, path=attributes.path)
    target = f"{resource.plural}/{part}" if part else resource.plural
    return Right(attributes.verb, resource.group, target, attributes.name)


def gives(rule: Rule, right: Right) -> bool:
    if not _contains(rule, "verbs", right.verb):
        return False
    if not right.resource:
        return any(_matches_url(url, right.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _contains(rule, "apiGroups", right.group)
        and (not names or right.name in names)
        and (
            _contains(rule, "resources", right.resource)
            or f"*/{right.resource.partition('/')[2]}" in (rule.get("resources") or ())
        )
    )


def _contains(rule: Rule, field: str, wanted: str) -> bool:
    values = rule.get(field) or ()
    return ALL in values or wanted in values


def _matches_url(url: str, path: str) -> bool:
    return path == url or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))
