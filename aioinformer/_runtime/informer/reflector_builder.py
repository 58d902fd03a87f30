"""Builds the reflectors of one informer, which share the informer's options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from aioinformer._core.codec.shape import Converter
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import ObjectFilter
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.informer.options import PipelineOptions
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import (
    ListerWatcher,
    SupportsListOptions,
    SupportsMetadataOnly,
)
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer.errors import UsageError

Select: TypeAlias = Callable[[Resource, EntryQueue], tuple[EntryQueue, ObjectFilter | None]]
"""Returns the queue and the filter of a reflector that feeds the given queue."""


class ReflectorBuilder(Struct, frozen=True, kw_only=True):
    """The options that all reflectors of one informer have."""

    options: PipelineOptions
    reporter: InformerReporter
    deduplicate: Callable[[KubeObject], KubeObject]
    """Returns the cached object if it equals the given one."""
    converter: Converter | None
    metadata_only: bool
    managed_fields: bool
    profile: ServerProfile | None
    select: Select

    def make(
        self,
        source: ListerWatcher,
        queue: EntryQueue,
        *,
        reporter: InformerReporter | None = None,
        optional: bool = False,
    ) -> Reflector:
        """Return a reflector of ``source`` that feeds ``queue``.

        ``reporter`` is the informer's by default. An ``optional`` scope is tried again after every
        error, also one of ``fail_fast``.
        """
        if self.metadata_only and isinstance(source, SupportsMetadataOnly):
            source = source.with_metadata_only()
        if query := self.options.list_options:
            if not isinstance(source, SupportsListOptions):
                raise UsageError(f"{source!r} takes no list_options=")
            source = source.with_list_options(query)
        entries, filter = self.select(source.resource, queue)
        return Reflector(
            source,
            entries,
            options=self.options,
            profile=self.profile,
            managed_fields=self.managed_fields,
            converter=self.converter,
            deduplicate=self.deduplicate,
            fail_fast=() if optional else self.options.fail_fast,
            filter=filter,
            reporter=reporter or self.reporter,
        )
