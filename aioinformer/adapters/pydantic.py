"""Pydantic models as what programs see of cached objects: ``convert=model(Pod)``.

    from aioinformer.adapters.pydantic import model

    pods = informers.informer("pods", convert=model(Pod))  # SharedInformer[Pod]

The cache keeps the objects' JSON, and an object is validated when somebody looks at it. So that one
that doesn't fit is found late, by who reads it: ``ModelMismatch``. What the error says has no value
of the object in it, which may be a secret.

A ``msgspec.Struct`` with ``model=`` is validated as it is read, in a tenth of the time.
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
    """What makes a ``kind`` of an object. For the same model it is the same function, so that two
    parts of a program that ask for it share one informer.

    Args:
        kind: the model. It gets the whole object as JSON, with ``kind`` and ``apiVersion``.
    """
    return _PydanticConverter(kind)


@dataclass(frozen=True, slots=True)
class _PydanticConverter(Generic[M]):
    kind: type[M]

    @property
    def __name__(self) -> str:  # what its informer is called by
        return str(self.kind.__qualname__)

    def __repr__(self) -> str:
        return f"model({self.__name__})"

    def __call__(self, obj: KubeObject) -> M:
        """The model of ``obj``.

        Raises:
            ValueError: it doesn't fit.
        """
        try:
            return self.kind.model_validate_json(with_type_meta(obj))
        except ValidationError as error:
            told = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
                for each in error.errors(include_url=False, include_context=False)
            )
        # Not from pydantic's error, which shows the values.
        raise ValueError(told)
