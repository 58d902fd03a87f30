"""Tokens of service accounts: signed claims, so that no token is kept (RFC 7519).

A token is valid until it expires, only for servers of the cluster whose key signed it.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

ISSUER = "https://kubernetes.default.svc.cluster.local"
_HEADER: dict[str, Any] = {"alg": "HS256", "typ": "JWT"}


@dataclass(frozen=True, slots=True)
class ServiceAccountClaims:
    namespace: str
    name: str
    uid: str

    @property
    def user_name(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def issue_token(
    key: bytes,
    account: ServiceAccountClaims,
    audiences: Sequence[str],
    *,
    issued: dt.datetime,
    expiry: dt.datetime,
) -> str:
    named = {"name": account.name, "uid": account.uid}
    claims = {
        "aud": list(audiences),
        "exp": int(expiry.timestamp()),
        "iat": int(issued.timestamp()),
        "iss": ISSUER,
        "kubernetes.io": {"namespace": account.namespace, "serviceaccount": named},
        "sub": account.user_name,
    }
    signed = f"{_encode(_HEADER)}.{_encode(claims)}"
    return f"{signed}.{_sign(key, signed)}"


class _AccountClaim(msgspec.Struct):
    name: str
    uid: str


class _KubernetesClaim(msgspec.Struct):
    namespace: str
    serviceaccount: _AccountClaim


class _Claims(msgspec.Struct):
    exp: int
    kubernetes: _KubernetesClaim = msgspec.field(name="kubernetes.io")


def read_token(key: bytes, token: str, now: dt.datetime) -> ServiceAccountClaims | None:
    """Return the service account of a token; ``None`` if the token is not valid (any more)."""
    signed, _, signature = token.rpartition(".")
    if not signed or not hmac.compare_digest(_sign(key, signed).encode(), signature.encode()):
        return None
    try:
        payload = signed.partition(".")[2]
        padded = payload + "=" * (-len(payload) % 4)
        claims = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Claims)
    except (msgspec.DecodeError, binascii.Error):
        return None
    if claims.exp <= now.timestamp():
        return None
    account = claims.kubernetes.serviceaccount
    return ServiceAccountClaims(claims.kubernetes.namespace, account.name, account.uid)


def _encode(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(part)).rstrip(b"=").decode()


def _sign(key: bytes, signed: str) -> str:
    digest = hmac.digest(key, signed.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
