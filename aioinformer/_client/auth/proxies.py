"""``Proxy``: the proxy in front of a server, from a URL or from the environment.

As in client-go, the environment names the proxy unless the kubeconfig has a ``proxy-url``, by the
rules of Go (package ``httpproxy``). aiohttp's ``trust_env`` would also read ``.netrc``, and
Python's rules for ``$NO_PROXY`` know no CIDR and no loopback address.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from yarl import URL

from aioinformer.errors import ConfigurationError

IpAddress: TypeAlias = IPv4Address | IPv6Address


def host_and_port(url: URL) -> str:
    """Return the host and the port of a URL for a message, an IPv6 address in brackets."""
    return f"{url.host_subcomponent}:{url.port}"


SOCKS_SCHEMES = ("socks5", "socks5h")
SOCKS_PORT = 1080
MAX_LOGIN = 255
"""Characters of a user or a password in SOCKS5; python-socks sends ASCII alone."""

UNBRACKETED_ADDRESS = re.compile(
    r"(?:[^/?#]*://)?(?:[^/?#]*@)?\[?[\da-f]*(?::[\da-f.]*){2,}(?:%[^/?#\]]*)?(?:[/?#].*)?",
    re.IGNORECASE,
)
"""A URL, or the part behind its scheme, with an address of IPv6 that is not in brackets."""


def bracket_hint(text: str, example: str) -> str:
    """Return the half sentence for the URL of an IPv6 address without brackets; else nothing."""
    if UNBRACKETED_ADDRESS.fullmatch(text) is None:
        return ""
    return f": an IPv6 address is written in brackets, as in {example}"


def is_loopback(host: str) -> bool:
    """Return True for ``localhost`` and a loopback address. The host is in lower case."""
    address = _parse_address(host)
    return host.removesuffix(".") == "localhost" or (address is not None and address.is_loopback)


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP or SOCKS5 proxy and the credentials for it."""

    url: URL
    """The URL without user and password, because aiohttp shows it in the repr of its exceptions."""
    authorization: str = field(default="", repr=False)
    """The ``Proxy-Authorization`` header of an HTTP proxy; empty for none."""
    variable: str = ""
    """The environment variable that names the proxy; empty if the configuration names it."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    """The user and the password of a SOCKS5 proxy; ``None`` for none."""

    @property
    def is_socks(self) -> bool:
        return self.url.scheme in SOCKS_SCHEMES

    @property
    def description(self) -> str:
        """The proxy's host and port, and the variable that names it, for messages."""
        name = f"the proxy {host_and_port(self.url)}"
        return f"{name} (from ${self.variable})" if self.variable else name


def parse_proxy_url(text: str) -> Proxy:
    """Parse the URL of a proxy, which may contain a user and password.

    Raises:
        ConfigurationError: the text is not the URL of an HTTP or SOCKS5 proxy, or the extra
            ``socks`` is not installed.
    """
    try:
        url = URL(text)
        has_host = bool(url.host)
    except ValueError:
        has_host, url = False, URL()
    if url.scheme not in ("http", "https", *SOCKS_SCHEMES) or not has_host:
        hint = bracket_hint(text, "http://[fd00::1]:3128")
        raise ConfigurationError(
            f"a proxy is a URL such as http://10.0.0.1:3128 or socks5://10.0.0.1:1080{hint}"
        )
    login = None if url.user is None else (url.user, url.password or "")
    if url.scheme in SOCKS_SCHEMES:
        if find_spec("python_socks") is None:
            raise ConfigurationError(
                "a SOCKS5 proxy needs python-socks, which is not installed: "
                "pip install 'aioinformer[socks]'"
            )
        if login and not all(0 < len(each) <= MAX_LOGIN and each.isascii() for each in login):
            raise ConfigurationError(
                f"the user and the password of a SOCKS5 proxy have 1 to {MAX_LOGIN} ASCII "
                f"characters"
            )
        return Proxy(url.with_user(None).with_port(url.port or SOCKS_PORT), login=login)
    if login is None:
        return Proxy(url)
    pair = ":".join(login).encode()
    return Proxy(url.with_user(None), f"Basic {base64.b64encode(pair).decode()}")


# -- the environment ---------------------------------------------------------------------------


def find_environment_proxy(server: URL, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment names for a server; ``None`` for none.

    ``$HTTPS_PROXY`` is for servers with TLS, ``$HTTP_PROXY`` for others; ``$NO_PROXY`` names the
    servers without proxy. The names may be in lower case. ``localhost`` and loopback addresses have
    no proxy. ``$HTTP_PROXY`` is ignored in a CGI program, where a request's header may set it.

    Raises:
        ConfigurationError: the variable doesn't contain the URL of an HTTP or SOCKS5 proxy.
    """
    scheme = server.scheme.upper()
    names = [f"{scheme}_PROXY", f"{scheme}_PROXY".lower()]
    if environment.get("REQUEST_METHOD"):
        names = [name for name in names if name != "HTTP_PROXY"]
    variable = next((name for name in names if environment.get(name)), None)
    if variable is None or not _needs_proxy(server, _read_exceptions(environment)):
        return None
    text = environment[variable]
    try:
        proxy = parse_proxy_url(text if "://" in text else f"http://{text}")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"${variable} can't be used for {server.host}: {error}. If the server needs no proxy, "
            f"name it in $NO_PROXY"
        ) from None
    return replace(proxy, variable=variable)


def _read_exceptions(environment: Mapping[str, str]) -> list[str]:
    text = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return [entry for each in text.split(",") if (entry := each.strip().lower())]


def _needs_proxy(server: URL, exceptions: list[str]) -> bool:
    host, port = (server.raw_host or "").lower(), str(server.port or "")
    address = _parse_address(host)
    excepted = any(_matches(entry, host, address, port) for entry in exceptions)
    return not (is_loopback(host) or excepted)


def _matches(entry: str, host: str, address: IpAddress | None, port: str) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_in_network(address, entry)
    name, wanted_port = _split_port(entry)
    if wanted_port not in ("", port):
        return False
    wanted_address = _parse_address(name)
    if wanted_address is not None or address is not None:
        return wanted_address == address
    domain = name[1:] if name.startswith("*.") else name
    return bool(domain) and (
        host.endswith(domain) if domain[0] == "." else f".{host}".endswith(f".{domain}")
    )


def _split_port(entry: str) -> tuple[str, str]:
    """Return the host and the port of an entry. An IPv6 address with a port is in brackets."""
    name, separator, port = entry.rpartition(":")
    if name.startswith("[") and name.endswith("]"):
        return name[1:-1], port
    return (name, port) if separator and ":" not in name else (entry, "")


def _is_in_network(address: IpAddress, entry: str) -> bool:
    with suppress(ValueError):
        return address in ip_network(entry, strict=False)
    return False


def _parse_address(text: str) -> IpAddress | None:
    """Return the address that a text is; an IPv4 address if it is one in the form of IPv6."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
