"""The decision about a request: the user's own rules, then the RBAC objects of the cluster.

Roles, ClusterRoles and their bindings are read at each request, so that a test restricts a program
with the manifests that the program is installed with. Aggregated ClusterRoles are as they are
stored: no controller fills them in here. Source: kubernetes' RBAC authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aioinformer.errors import ServerError
from aioinformer.testing.access.users import ALL, UNAUTHENTICATED, RequestAttributes, User
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses

_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version")
"""The documents that are shown to everyone (``system:public-info-viewer``)."""
_DISCOVERY_PATHS = (*_PUBLIC_PATHS, "/api", "/apis", "/openapi")
"""The documents that are shown to every user with credentials (``system:discovery``)."""
_SELF_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews")
"""The reviews that each user with credentials may create (``system:basic-user``)."""
_SERVICE_ACCOUNT = "system:serviceaccount"


def is_allowed(cluster: Cluster, user: User, attributes: RequestAttributes) -> bool:
    if user.unrestricted or any(rule.allows(attributes) for rule in user.rules):
        return True
    if _is_public(user, attributes):
        return True
    rules = bound_rules(cluster, user, attributes.namespace)
    return any(_rule_allows(rule, attributes) for rule in rules)


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


def _is_public(user: User, attributes: RequestAttributes) -> bool:
    known = UNAUTHENTICATED not in user.groups
    if attributes.resource is None:
        roots = _DISCOVERY_PATHS if known else _PUBLIC_PATHS
        is_read = attributes.verb == "get"
        return is_read and any(
            attributes.path == root or _is_below(attributes.path, root) for root in roots
        )
    return known and attributes.verb == "create" and attributes.resource.plural in _SELF_REVIEWS


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/")


# -- RBAC objects ------------------------------------------------------------------------------


def bound_rules(cluster: Cluster, user: User, namespace: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rules that bindings give to a user, in a namespace and everywhere."""
    for binding in cluster.objects("clusterrolebindings"):
        if _binds(binding, user):
            yield from _role_rules(cluster, binding, "")
    if namespace:
        for binding in cluster.objects("rolebindings", namespace=namespace):
            if _binds(binding, user):
                yield from _role_rules(cluster, binding, namespace)


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


def _role_rules(
    cluster: Cluster, binding: Mapping[str, Any], namespace: str
) -> Iterable[Mapping[str, Any]]:
    reference: Mapping[str, Any] = binding.get("roleRef") or {}
    is_role = reference.get("kind") == "Role"
    role = cluster.find_object(
        "roles" if is_role else "clusterroles",
        str(reference.get("name", "")),
        namespace=namespace if is_role else None,
    )
    return (role or {}).get("rules") or ()


def _rule_allows(rule: Mapping[str, Any], attributes: RequestAttributes) -> bool:
    if not _contains(rule, "verbs", attributes.verb):
        return False
    resource = attributes.resource
    if resource is None:
        return any(_matches_url(url, attributes.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _contains(rule, "apiGroups", resource.group)
        and (not names or attributes.name in names)
        and _contains_resource(rule.get("resources") or (), resource.plural, attributes.part)
    )


def _contains(rule: Mapping[str, Any], field: str, wanted: str) -> bool:
    values = rule.get(field) or ()
    return ALL in values or wanted in values


def _contains_resource(resources: Iterable[str], plural: str, part: str) -> bool:
    wanted = {ALL, f"{plural}/{part}", f"*/{part}"} if part else {ALL, plural}
    return not wanted.isdisjoint(resources)


def _matches_url(url: str, path: str) -> bool:
    return path.startswith(url[:-1]) if url.endswith(ALL) else path == url
