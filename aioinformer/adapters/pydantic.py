"""Pydantic models as the form in which a program sees cached objects: ``convert=model(Pod)``.

    from aioinformer.adapters.pydantic import model

    pods = informers.informer("pods", convert=model(Pod))  # SharedInformer[Pod]

The cache keeps the objects' JSON, and an object is validated when a program reads it. So an invalid
object is found late: the read raises ``ModelMismatch``, whose text contains no value of the object,
since a value may be a secret.

A ``msgspec.Struct`` with ``model=`` is validated when it is received, in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from aioinformer._core.codec.shape import with_type_meta
from aioinformer._core.objects.kube_object import KubeObject

__all__ = ["model"]

M = TypeVar("M", bound=BaseModel)

QUOTING_TYPES = frozenset(
    {
        "assertion_error",
        "bytes_invalid_encoding",
        "get_attribute_error",
        "iteration_error",
        "mapping_type",
        "union_tag_invalid",
        "uuid_parsing",
        "value_error",
    }
)
"""pydantic's types of errors whose texts quote the value, or the words of a validator."""

KNOWN_TYPES = frozenset[str](get_args(ErrorType)) - QUOTING_TYPES
"""pydantic's other types of errors. The text of a program's own type may quote the value."""


def model(kind: type[M]) -> Callable[[KubeObject], M]:
    """Return a function that converts an object to a ``kind``.

    Equal arguments give equal functions, so that two parts of a program that ask for the same model
    share one informer. pydantic receives the whole object as JSON, with ``kind`` and
    ``apiVersion``.
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
        """Return the model of ``obj``; raise ``ValueError`` if it doesn't fit."""
        try:
            return self.kind.model_validate_json(with_type_meta(obj))
        except ValidationError as error:
            message = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {_describe_fault(each)}"
                for each in error.errors(include_url=False, include_input=False)
            )
        # Outside of the except block: pydantic's error, which quotes values, isn't the context.
        raise ValueError(message)


def _describe_fault(fault: ErrorDetails) -> str:
    """Return pydantic's text for a fault, or its type if the text may quote a value."""
    if fault["type"] in KNOWN_TYPES:
        return fault["msg"]
    if fault["type"] == "union_tag_invalid":
        expected = fault.get("ctx", {}).get("expected_tags", "")
        return f"Input tag doesn't match any of the expected tags: {expected}"
    return f"{fault['type']} (its text may quote the value and is not shown)"
