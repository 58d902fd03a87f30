"""Errors of decoding, and of a program's functions at a Secret, without the input that they quote.

A ``UnicodeDecodeError`` holds all of its input, which its repr shows. msgspec quotes an invalid
value or an unknown field. A traceback refers to frames, whose local variables are the bytes of a
response. The input may be a Secret, so ``discard_input`` removes it before an error leaves the
decoder.

A validator, or ``int()``, quotes the invalid value, too. So the text of an exception that a
program's function raises at a Secret reaches no log, error hook or exception of this library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import msgspec

from aioinformer.errors import ModelMismatch, ObjectDecodeError, TransformFailed, UsageError

if TYPE_CHECKING:
    from aioinformer._core.objects.resources import Resource

E = TypeVar("E", bound=BaseException)

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of decoding bytes that aren't JSON of the expected form. A thousand nested arrays are
a ``RecursionError``."""

_QUOTES = re.compile(r"'[^']*'|`[^`]*`(?= - at|$)|\".*\"", re.DOTALL)
"""Parts of msgspec's messages that may quote the input: ``Invalid value 'x' - at `$.kind```, and
``Object contains unknown field `x```. Types and paths are in backquotes, too."""

QUOTING_MESSAGES = ("Invalid value", "Invalid enum value", "Object contains unknown field")

HIDDEN_TEXT = "its text may quote the Secret and is not shown"

_WITHOUT_CONTENTS = (ModelMismatch, TransformFailed, ObjectDecodeError)
"""Errors of this library whose texts quote no contents, and which have no cause for a Secret."""


def discard_input(error: E) -> E:
    """Remove the input of decoders from ``error``, its causes and its contexts, in place.

    Tracebacks are removed, too. The class, the reason and the position of each error stay.
    """
    for each in iter_related(error):
        each.__traceback__ = None
        if isinstance(each, UnicodeDecodeError):
            each.args = (each.encoding, b"", each.start, each.end, each.reason)
            each.object = b""
        elif isinstance(each, UnicodeError):
            each.args = ("a text that can't be converted",)
        elif isinstance(each, msgspec.MsgspecError):
            each.args = tuple(_without_quotes(argument) for argument in each.args)
    return error


def iter_related(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all of its causes and contexts, each once."""
    seen, todo = set[int](), [error]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [other for other in (each.__cause__, each.__context__) if other is not None]


def _without_quotes(argument: object) -> object:
    if not isinstance(argument, str):
        return ""
    quotes = argument.startswith(QUOTING_MESSAGES)
    return _QUOTES.sub("(not shown)", argument, count=1) if quotes else argument


def is_secret(resource: Resource) -> bool:
    return resource.plural == "secrets" and not resource.group


def hide_secret(resource: Resource, error: E) -> E | UsageError:
    """Return the exception of a function that was called with an object of ``resource``.

    For a Secret it is a ``UsageError`` that names the exception's class only, without its
    traceback, since the frames hold the Secret.
    """
    if not is_secret(resource) or isinstance(error, _WITHOUT_CONTENTS):
        return error
    return UsageError(f"a {type(error).__name__} was raised; {HIDDEN_TEXT}")
