"""``transform=``: a program's function that replaces or drops objects before anything sees them.

It runs once for each version that is read, whatever kind of event brought it, so that what it cuts
is never cached. What it returns must be the same object still, by key, uid and version: else the
cache would file it elsewhere, or take it for older or newer than it is. client-go's TransformFunc
may return anything, and an error of it stops the informer; here it costs that one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from aioinformer._core.bodies import read_body
from aioinformer._core.items import Withheld
from aioinformer._core.keys import ObjectKey
from aioinformer._core.objects import KubeObject
from aioinformer._core.views import misfit, name_of
from aioinformer.errors import TransformFailed

__all__ = ["Transform", "Transforming"]

Transform: TypeAlias = Callable[[KubeObject], KubeObject | Mapping[str, Any] | None]
"""Gives the object itself, another body for it, or ``None`` to drop it. It must give the same
answer for the same object every time; it runs in the event loop, for each object that is read."""


class Transforming:
    """Calls one ``transform=``."""

    def __init__(self, transform: Transform) -> None:
        """Have ``transform`` called for each object."""
        self._transform = transform

    def __call__(self, obj: KubeObject) -> KubeObject:
        """What is to be cached of ``obj``: itself, another body, or ``Withheld``."""
        try:
            made = self._transform(obj)
            if made is obj:
                return obj
            return Withheld.of(obj) if made is None else _with_body_of(made, obj)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            what = f"transform= {name_of(self._transform)} failed"
            return Withheld.of(obj, misfit(TransformFailed, obj, what, error))

    def __repr__(self) -> str:
        return f"<Transforming by {name_of(self._transform)}>"


def _with_body_of(made: object, obj: KubeObject) -> KubeObject:
    """``obj`` with another body.

    Raises:
        TypeError: ``made`` is no object.
        ValueError: it is another object, or another version of it.
        msgspec.MsgspecError: it is no Kubernetes object, or can't be written as JSON.
    """
    if isinstance(made, KubeObject):
        raw, identity = made.raw, (made.key, made.uid, made.resource_version)
    elif isinstance(made, Mapping):
        raw = _encode(cast("Mapping[str, Any]", made))
        metadata = read_body(raw).metadata
        key = ObjectKey(metadata.namespace, metadata.name)
        identity = (key, metadata.uid, metadata.resourceVersion)
    else:
        raise TypeError(f"it returned a {type(made).__name__}, not an object, a mapping or None")
    kept = (obj.key, obj.uid, obj.resource_version)
    if identity != kept:
        was, now = (f"{key} uid={uid} rv={rv}" for key, uid, rv in (kept, identity))
        raise ValueError(f"it must keep name, namespace, uid and resourceVersion: {was} is {now}")
    return KubeObject(obj.key, obj.uid, obj.resource_version, raw, obj.resource)


def _plain(value: object) -> object:
    """A part of a cached object, which is read-only, as something that JSON has."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} can't be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
