"""``Access``: the users of a server by their tokens, and the check of each request.

    server = ApiServer()
    ada = server.access.add_user("ada", token="t", rules=[PolicyRule(verbs=["list"])])
    config = server.kubeconfig(tmp_path / "ada", user="ada")
    ada.rules.clear()  # the next request of ada is answered with 403

A request with the token of a user may do what the user may. With ``AlwaysAllow``, the default,
every other request is allowed, so that a test fills the cluster without credentials. With ``RBAC``
a request without a token is one of ``system:anonymous``, an unknown token is answered with 401, and
service accounts have the rights that RBAC objects give to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from hmac import compare_digest
from typing import Literal, TypeAlias

from aioinformer.testing.access.tokens import ServiceAccountClaims, read_token
from aioinformer.testing.access.users import (
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    PolicyRule,
    User,
    service_account_groups,
)
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses

AuthorizationMode: TypeAlias = Literal["AlwaysAllow", "RBAC"]
"""The mode for requests without the token of a user (``--authorization-mode``)."""


class Access:
    """The users of a server. ``ApiServer`` makes one, as ``server.access``."""

    def __init__(
        self, *, token: str | None = None, authorization: AuthorizationMode = "AlwaysAllow"
    ) -> None:
        """Make an access without users.

        Args:
            token: the token of the administrator. With it, a request needs a token.
            authorization: the mode for requests without the token of a user.
        """
        self.authorization = authorization
        self._users: dict[str, User] = {}
        self.admin_token = token
        if token is not None:
            self._users[token] = User("admin", groups=(MASTERS,))

    def add_user(
        self, name: str, *, token: str, groups: Iterable[str] = (), rules: Iterable[PolicyRule] = ()
    ) -> User:
        """Add a user, or replace the user of this token; return it, with ``rules`` to change.

        Args:
            name: the name of the user, which errors show.
            token: the bearer token of the user's requests.
            groups: the groups besides ``system:authenticated``; members of ``system:masters`` may
                do everything.
            rules: the requests that the user may send, besides those that bindings in the cluster
                allow.

        Raises:
            ValueError: the name or the token is empty.
        """
        if not name or not token:
            raise ValueError("a user has a name and a token, which are not empty")
        user = self._users[token] = User(name, groups=groups, rules=rules)
        return user

    def find_user(self, name: str) -> User | None:
        """Return the user with this name, or ``None``."""
        return next((user for user in self._users.values() if user.name == name), None)

    def token_of(self, name: str) -> str:
        """Return the token of a user; raise ``ValueError`` if no user has this name."""
        for token, user in self._users.items():
            if user.name == name:
                return token
        known = ", ".join(user.name for user in self._users.values()) or "none"
        raise ValueError(f"no user is called {name!r}; the users are: {known}")

    def authenticate(self, cluster: Cluster, authorization: str) -> User:
        """Return the user of the header ``Authorization`` (empty for none), also a service account.

        Raises:
            Unauthorized: the token is not known, or is missing where one is needed.
        """
        scheme, _, shown = authorization.partition(" ")
        shown = shown.strip() if scheme.lower() == "bearer" else ""
        for token, user in self._users.items():
            if compare_digest(shown.encode(), token.encode()):
                return user
        account = read_token(cluster.signing_key, shown, cluster.now()) if shown else None
        if account is not None and _exists(cluster, account):
            return self._make_account_user(account)
        if self.admin_token is not None or (shown and self.authorization == "RBAC"):
            raise statuses.unauthorized()
        return self.make_user(statuses.ANONYMOUS, (UNAUTHENTICATED,))

    def make_user(self, name: str, groups: Iterable[str]) -> User:
        """Return the user of this name, in these groups alone, with the rights of a request by it.

        The rules are those of the user whom ``add_user`` gave this name.
        """
        known = self.find_user(name)
        user = User(name)
        user.groups = tuple(groups)
        user.rules = known.rules if known is not None else []
        is_free = self.authorization == "AlwaysAllow" and known is None
        user.unrestricted = is_free or MASTERS in user.groups
        return user

    def _make_account_user(self, account: ServiceAccountClaims) -> User:
        groups = (*service_account_groups(account.namespace), AUTHENTICATED)
        user = self.make_user(account.user_name, groups)
        user.uid = account.uid
        return user

    def __repr__(self) -> str:
        names = ", ".join(user.name for user in self._users.values())
        return f"<Access {self.authorization} users: {names or 'none'}>"


def _exists(cluster: Cluster, account: ServiceAccountClaims) -> bool:
    """Return True if the service account of a token is still the same one."""
    found = cluster.find_object("serviceaccounts", account.name, namespace=account.namespace)
    return found is not None and found["metadata"]["uid"] == account.uid
