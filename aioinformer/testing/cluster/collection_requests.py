"""Requests for the objects of a collection: lists, watches, deletions of many objects.

Each takes the query of a request, parses its selectors, and chooses the form of the answer.
``Cluster`` documents the errors of each method.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import NotFound
from aioinformer.testing.cluster.definitions import DefinitionController
from aioinformer.testing.cluster.features import Features
from aioinformer.testing.cluster.pages import ListQuery, encode_page, select_page
from aioinformer.testing.cluster.registry import Preconditions, Registry
from aioinformer.testing.cluster.selection import Selection, SelectorQuery
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.cluster.watch_start import WatchLimits, WatchQuery, open_watch
from aioinformer.testing.cluster.watches import Watch, WatchView
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import ObjectEncoder
from aioinformer.testing.wire.tables import Include, ObjectForm, make_encoder

__all__ = ["CollectionRequests"]


@dataclass(frozen=True, slots=True)
class CollectionRequests:
    """The lists, watches and deletions of collections of a storage."""

    storage: Storage
    registry: Registry
    definitions: DefinitionController
    features: Features
    watch_buffer: int
    """The number of lines that can wait in a watch."""

    def list_page(self, resource: str | Resource, query: ListQuery) -> bytes:
        """Return the page that a query describes."""
        with statuses.error_phase("list"):
            collection = self.storage.find(resource)
            return encode_page(
                self.storage,
                collection,
                self._parse_selection(collection, query.selectors),
                query,
                encoder=self._make_encoder(collection, query.form, query.include),
                from_watch_cache=self.features.watch_list,
            )

    def delete_page(
        self,
        resource: str | Resource,
        query: ListQuery,
        preconditions: Preconditions,
        *,
        dry_run: bool,
    ) -> bytes:
        """Delete the objects of the page that a query describes; return the page."""
        collection = self.storage.find(resource)
        with statuses.error_phase("write"):
            page = select_page(
                self.storage,
                collection,
                self._parse_selection(collection, query.selectors),
                query,
                from_watch_cache=self.features.watch_list,
            )
        encoder = self._make_encoder(collection, query.form, query.include)
        for stored in page.rows:
            # The deletion of an owner may have removed the object.
            with contextlib.suppress(NotFound):
                self.registry.delete(
                    resource,
                    stored.name,
                    stored.namespace or None,
                    preconditions=preconditions,
                    dry_run=dry_run,
                )
        return encoder.encode_list(page.rows, page.list_meta)

    def open_watch(self, resource: str | Resource, query: WatchQuery, *, now: float) -> Watch:
        """Open the watch that a query describes."""
        with statuses.error_phase("watch"):
            collection = self.storage.find(resource)
            selection = self._parse_selection(collection, query.selectors)
            encoder = self._make_encoder(collection, query.form, query.include)
            return open_watch(
                self.storage,
                collection,
                WatchView(collection.encoding.resource, selection, encoder),
                query,
                now=now,
                limits=WatchLimits(self.watch_buffer, self.features.watch_list),
            )

    def _make_encoder(
        self, collection: Collection, form: ObjectForm, include: Include
    ) -> ObjectEncoder:
        columns = self.definitions.columns(collection.encoding.resource)
        return make_encoder(collection.encoding, form, include, self.registry.clock, columns)

    def _parse_selection(self, collection: Collection, selectors: SelectorQuery) -> Selection:
        return Selection.parse(collection.encoding, selectors, sharding=self.features.sharding)
