"""``User-Agent`` and field manager: the names under which a server records a program.

The names are made as client-go's ``DefaultKubernetesUserAgent`` and apiserver's
``prefixFromUserAgent`` make them, so that audit log and managed fields name the program.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Self

from aioinformer._core.arguments import MAX_MANAGER_LENGTH, check_field_manager, check_text

MAX_USER_AGENT_LENGTH = 512
"""The longest User-Agent that is sent; the limits of proxies on all headers begin at 4 kB."""

_UNUSABLE = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Characters that a product's name can't have (RFC 9110, ``token``). A slash ends the name."""


def program_name(arguments: Sequence[str]) -> str:
    """Return the name of the program whose command line is ``arguments``.

    ``/srv/shop.py`` is ``shop``, and ``python -m shop``, whose first argument is the path of
    ``shop/__main__.py``, too. A program without a name is ``python``.
    """
    path = PurePath(arguments[0] if arguments else "")
    if path.name == "__main__.py":
        path = path.parent
    name = path.name.removesuffix(".py")
    cleaned = _UNUSABLE.sub("-", name).strip("-")  # "-c" is the name of python -c
    return cleaned[:MAX_MANAGER_LENGTH] if cleaned not in ("", "c") else "python"


def default_user_agent(arguments: Sequence[str] | None = None) -> str:
    """Return ``program/unknown (linux/x86_64) aioinformer/1.0``, by default for ``sys.argv``.

    client-go writes ``unknown`` for the version of a program that states none.
    """
    program = program_name(sys.argv if arguments is None else arguments)
    system = f"{platform.system()}/{platform.machine()}".lower()
    return f"{program}/unknown ({system}) aioinformer/{_library_version()}"


def _library_version() -> str:
    try:
        return version("aioinformer")
    except PackageNotFoundError:  # run from a source tree
        return "0"


def _check_user_agent(user_agent: str) -> str:
    """Return ``user_agent`` if a header can have it as its value.

    Raises:
        TypeError: it is no text.
        ValueError: it is empty or too long, or has characters other than printable ASCII.
    """
    check_text("user_agent", user_agent, longest=MAX_USER_AGENT_LENGTH)
    if not user_agent.isascii():
        raise ValueError(f"user_agent must be ASCII text, as in 'shop/1.2', not {user_agent!r}")
    return user_agent


@dataclass(frozen=True, slots=True)
class ProgramNames:
    """The names of a program in the requests of its client."""

    user_agent: str
    field_manager: str
    """The field manager of each write; empty to let the server derive one."""

    @classmethod
    def of(cls, user_agent: str | None, field_manager: str | None) -> Self:
        """Return the names that a program has given, and the default User-Agent.

        Raises:
            TypeError: a name is no text.
            ValueError: a name is empty, too long or not printable.
        """
        if field_manager is not None:
            check_field_manager("field_manager", field_manager)
        return cls(
            default_user_agent() if user_agent is None else _check_user_agent(user_agent),
            field_manager or "",
        )

    @property
    def apply_manager(self) -> str:
        """The field manager of applies: by default what a server derives from the User-Agent."""
        return self.field_manager or self.user_agent.partition("/")[0][:MAX_MANAGER_LENGTH]
