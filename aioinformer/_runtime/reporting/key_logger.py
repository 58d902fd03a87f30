"""A logger that names a controller and a key in each line (controller-runtime's
``FromContext``).
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from aioinformer._core.objects.kube_object import ObjectKey

if TYPE_CHECKING:
    _Adapter = logging.LoggerAdapter[logging.Logger]
else:
    _Adapter = logging.LoggerAdapter

_LOGGER = logging.getLogger("aioinformer.reconcile")


class KeyLogger(_Adapter):
    """The logger of one run: ``aioinformer.reconcile``, with ``controller: key:`` before each line.

    Each record has the attributes ``controller`` and ``key``, for formatters that write JSON.
    """

    def __init__(self, controller: str, key: ObjectKey) -> None:
        super().__init__(_LOGGER, {"controller": controller, "key": str(key)})
        # A percent sign would be taken for a placeholder of the line's arguments.
        self._prefix = f"{controller}: {key}: ".replace("%", "_")

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return f"{self._prefix}{msg}", kwargs
