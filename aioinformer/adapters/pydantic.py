"""Pydantic models as the form in which a program sees cached objects: ``convert=model(Pod)``.

    from aioinformer.adapters.pydantic import model

    pods = informers.informer("pods", convert=model(Pod))  # SharedInformer[Pod]

The cache keeps the objects' JSON, and an object is validated when a program reads it. So an invalid
object is found late: the read raises ``ModelMismatch``. The text of that error contains no value of
the object, since a value may be a secret.

A ``msgspec.Struct`` with ``model=`` is validated when it is received, in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from aioinformer._core.codec.shape import with_type_meta
from aioinformer._core.objects.kube_object import KubeObject

__all__ = ["model"]

M = TypeVar("M", bound=BaseModel)


def model(kind: type[M]) -> Callable[[KubeObject], M]:
    """Return a function that converts an object to a ``kind``.

    Equal arguments give equal functions, so that two parts of a program that ask for the same model
    share one informer.

    Args:
        kind: the model. It receives the whole object as JSON, with ``kind`` and ``apiVersion``.
    """
    return _PydanticConverter(kind)


@dataclass(frozen=True, slots=True)
class _PydanticConverter(Generic[M]):
    kind: type[M]

    @property
    def __name__(self) -> str:  # part of its informer's name
        return str(self.kind.__qualname__)

    def __repr__(self) -> str:
        return f"model({self.__name__})"

    def __call__(self, obj: KubeObject) -> M:
        """Return the model of ``obj``.

        Raises:
            ValueError: the object doesn't fit the model.
        """
        try:
            return self.kind.model_validate_json(with_type_meta(obj))
        except ValidationError as error:
            message = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
                for each in error.errors(include_url=False, include_context=False)
            )
        # Outside of the except block: pydantic's error, which quotes values, isn't the context.
        raise ValueError(message)
