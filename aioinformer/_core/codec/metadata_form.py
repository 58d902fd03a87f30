"""The form of an object that has metadata only (``metadata_only=True``).

A server that is asked for it answers with ``PartialObjectMetadata``, and one that doesn't know the
form, such as an old aggregated API, with whole objects. Both are reduced to ``{"metadata": ...}``,
so that a relist finds equal bytes, and the object shows its own kind and apiVersion, as in
controller-runtime's metadata cache.
"""

from __future__ import annotations

from msgspec import Raw, Struct
from msgspec.json import Decoder

from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import KubeObject, create_object

_FORM = "application/json;as={};g=meta.k8s.io;v=v1,application/json"

METADATA_ACCEPT = _FORM.format("PartialObjectMetadata")
"""The ``Accept`` header of a watch of metadata. The second format, whole objects, is for servers
that don't know the first one; client-go's metadata client accepts it too."""
METADATA_LIST_ACCEPT = _FORM.format("PartialObjectMetadataList")

_SERVED_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{'
"""The beginning of an object as API servers write it. Nothing follows its metadata."""
_HEAD = b'{"metadata":{'


class _Metadata(Struct, gc=False):
    metadata: Raw


_decode_metadata = Decoder(_Metadata).decode


def keep_metadata(obj: KubeObject) -> KubeObject:
    raw = obj.raw
    if raw.startswith(_SERVED_HEAD):
        reduced = _HEAD + raw[len(_SERVED_HEAD) :]
    else:
        # The decoder of the list or watch has read the metadata already, so this can't fail.
        reduced = b'{"metadata":%b}' % bytes(decode_nested(_decode_metadata, raw).metadata)
    return create_object(obj.key, obj.uid, obj.resource_version, reduced, obj.resource)
