"""pydantic's schema and serializer of read-only objects, so that web endpoints can return them.

pydantic asks a type for its schema with ``__get_pydantic_core_schema__``, and serializes a value of
unknown type (``Any``) with the ``__pydantic_serializer__`` of its class. Both are made at first
use, so a program without pydantic never imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, SchemaSerializer


def make_schema(cls: type[Any]) -> CoreSchema:
    """Return the schema of a read-only class.

    A value is valid if it is an instance of ``cls``, and is serialized as the JSON object or array
    that it contains. Input from JSON is rejected: an object comes from an informer.
    """
    from pydantic_core import core_schema

    to_builtins = cls.to_list if hasattr(cls, "to_list") else cls.to_dict
    content: CoreSchema = (
        core_schema.list_schema()
        if hasattr(cls, "to_list")
        else core_schema.dict_schema(core_schema.str_schema())
    )

    def reject_json(_: object) -> NoReturn:
        raise ValueError(
            f"a {cls.__name__} comes from an informer and can't be made from JSON; declare a model "
            "for input"
        )

    return core_schema.json_or_python_schema(
        json_schema=core_schema.no_info_after_validator_function(reject_json, content),
        python_schema=core_schema.is_instance_schema(cls),
        serialization=core_schema.plain_serializer_function_ser_schema(
            to_builtins, return_schema=content
        ),
    )


class PydanticSerializer:
    """The descriptor ``__pydantic_serializer__``, which pydantic reads from values of any type."""

    def __init__(self) -> None:
        self._serializers: dict[type[Any], SchemaSerializer] = {}

    def __get__(self, instance: object, owner: type[Any]) -> SchemaSerializer:
        """Return the serializer; raise ``AttributeError`` if pydantic is not installed."""
        serializer = self._serializers.get(owner)
        if serializer is None:
            try:
                from pydantic_core import SchemaSerializer
            except ImportError as error:
                raise AttributeError("pydantic is not installed") from error
            serializer = self._serializers[owner] = SchemaSerializer(make_schema(owner))
        return serializer
