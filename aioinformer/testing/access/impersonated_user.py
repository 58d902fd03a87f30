"""Impersonation: a request that a user sends in the name of another one (``kubectl --as``).

The headers ``Impersonate-User``, ``-Group``, ``-Uid`` and ``-Extra-KEY`` name the other user, whose
rights decide about the request. The sender needs the right to impersonate. Since Kubernetes 1.36 a
server looks for two rights at first (KEP-5284): to impersonate for the request's verb
(``impersonate-on:user-info:list`` on pods), and to impersonate the user (``impersonate:user-info``
on users). Without them, the verb ``impersonate`` on the user, on each group and so on decides, as
in all versions. Source: apiserver's ``filters/impersonation``, without its mode for the node of a
service account: tokens here are bound to no node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import Forbidden
from aioinformer.testing.access.access import Access
from aioinformer.testing.access.rights import check_access, forbidden_error
from aioinformer.testing.access.users import (
    AUTHENTICATED,
    MASTERS,
    NODES,
    UNAUTHENTICATED,
    RequestAttributes,
    User,
    service_account_groups,
)
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses

_PREFIX, _EXTRA_PREFIX = "impersonate-", "impersonate-extra-"
_NODE = "system:node:"
_AUTHENTICATION = "authentication.k8s.io"
_LEGACY = "impersonate"


@dataclass(frozen=True, slots=True)
class Impersonation:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def service_account(self) -> tuple[str, str] | None:
        """The namespace and the name of the service account; ``None`` for other users."""
        match self.name.split(":"):
            case ["system", "serviceaccount", namespace, name] if namespace and name:
                return namespace, name
            case _:
                return None

    @property
    def mode(self) -> str:
        """The mode of the rights that include the request's verb; empty if there is none.

        Groups, a uid and extra values are possible for the users without a fixed form alone.
        """
        named_alone = not (self.groups or self.uid or self.extra)
        if self.service_account is not None:
            return "serviceaccount" if named_alone else ""
        if self.name.startswith(_NODE):
            return "arbitrary-node" if named_alone else ""
        return "user-info"


def read_impersonation(headers: Iterable[tuple[str, str]]) -> Impersonation | None:
    """Return the user in the headers, or ``None``; raise ``BadRequest`` if the name is missing."""
    found = [(name.lower(), value) for name, value in headers if _is_impersonating(name)]
    if not found:
        return None
    name = next((value for header, value in found if header == f"{_PREFIX}user"), "")
    groups = tuple(value for header, value in found if header == f"{_PREFIX}group")
    uid = next((value for header, value in found if header == f"{_PREFIX}uid"), "")
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in found:
        if header.startswith(_EXTRA_PREFIX):
            key = unquote(header.removeprefix(_EXTRA_PREFIX))
            extra[key] = (*extra.get(key, ()), value)
    if name:
        return Impersonation(name, groups, uid, extra)
    if groups or uid or extra:
        raise statuses.bad_request(
            "requested groups, a uid or extra values without impersonating a user name"
        )
    return None


def _is_impersonating(header: str) -> bool:
    return header[: len(_PREFIX)].lower() == _PREFIX


def impersonate(
    cluster: Cluster,
    access: Access,
    sender: User,
    wanted: Impersonation,
    attributes: RequestAttributes,
) -> User:
    """Return the user who counts for a request; raise ``Forbidden`` if ``sender`` may not."""
    refusal: Forbidden | None = None
    if cluster.features.constrained_impersonation and wanted.mode:
        rights = _iterate_constrained_rights(sender, wanted, attributes)
        refusal = _find_refusal(cluster, sender, rights)
        if refusal is None:
            return _make_user(access, wanted, _constrained_groups(wanted))
    legacy = _find_refusal(cluster, sender, _iterate_rights(wanted, _LEGACY, ""))
    if legacy is not None:
        raise refusal or legacy  # the server shows the first refusal
    return _make_user(access, wanted, _legacy_groups(wanted))


def _find_refusal(
    cluster: Cluster, sender: User, rights: Iterable[RequestAttributes]
) -> Forbidden | None:
    try:
        for each in rights:
            check_access(cluster, sender, each)
    except Forbidden as error:
        return error
    return None


def _iterate_constrained_rights(
    sender: User, wanted: Impersonation, attributes: RequestAttributes
) -> Iterator[RequestAttributes]:
    """Yield the rights for one verb on one kind of users; for ``system:masters`` none exists."""
    mode = wanted.mode
    yield replace(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}")
    verb = f"impersonate:{mode}"
    if MASTERS in wanted.groups:
        raise forbidden_error(sender, _attributes(verb, _AUTHENTICATION, "groups", MASTERS))
    yield from _iterate_rights(wanted, verb, _AUTHENTICATION)


def _iterate_rights(wanted: Impersonation, verb: str, group: str) -> Iterator[RequestAttributes]:
    """Yield the rights that the sender needs: for the user, the uid, each group and extra value."""
    account = wanted.service_account
    if account is not None:
        namespace, name = account
        yield _attributes(verb, group, "serviceaccounts", name, namespace=namespace)
    elif verb != _LEGACY and wanted.name.startswith(_NODE):
        yield _attributes(verb, group, "nodes", wanted.name.removeprefix(_NODE))
    else:
        yield _attributes(verb, group, "users", wanted.name)
    if wanted.uid:
        yield _attributes(verb, _AUTHENTICATION, "uids", wanted.uid)
    for each in wanted.groups:
        yield _attributes(verb, group, "groups", each)
    for key, values in wanted.extra.items():
        for value in values:
            yield _attributes(verb, _AUTHENTICATION, "userextras", value, part=key)


def _attributes(
    verb: str, group: str, plural: str, name: str, *, namespace: str = "", part: str = ""
) -> RequestAttributes:
    resource = Resource(group, "v1", plural, plural, namespaced=bool(namespace))
    return RequestAttributes(
        verb=verb, resource=resource, part=part, namespace=namespace, name=name
    )


def _legacy_groups(wanted: Impersonation) -> tuple[str, ...]:
    account = wanted.service_account
    if account is None or wanted.groups:
        return wanted.groups
    return service_account_groups(account[0])


def _constrained_groups(wanted: Impersonation) -> tuple[str, ...]:
    return (NODES,) if wanted.name.startswith(_NODE) else _legacy_groups(wanted)


def _make_user(access: Access, wanted: Impersonation, groups: tuple[str, ...]) -> User:
    user = access.make_user(wanted.name, _complete_groups(wanted, groups))
    user.uid, user.extra = wanted.uid, wanted.extra
    return user


def _complete_groups(wanted: Impersonation, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups with the one of all users that the server adds."""
    added = AUTHENTICATED
    if wanted.name == statuses.ANONYMOUS:
        added = UNAUTHENTICATED
    elif UNAUTHENTICATED in groups:
        return groups
    return groups if added in groups else (*groups, added)
