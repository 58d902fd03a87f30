"""Requests for the objects of a collection: lists, watches, deletions of many objects.

``Cluster`` documents the errors of each method.
"""

from __future__ import annotations

import contextlib
from collections.abc import Set
from dataclasses import dataclass
from typing import TypedDict

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import NotFound
from aioinformer.testing.cluster.definitions import DefinitionController
from aioinformer.testing.cluster.pages import ListQuery, encode_page, select_page
from aioinformer.testing.cluster.registry import Preconditions, Registry
from aioinformer.testing.cluster.server_features import Features
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.cluster.watch_start import WatchLimits, WatchQuery, open_watch
from aioinformer.testing.cluster.watches import Watch, WatchView
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import ObjectEncoder
from aioinformer.testing.wire.selection import Selection, SelectorQuery
from aioinformer.testing.wire.tables import Include, ObjectForm, make_encoder


class CollectionOptions(TypedDict, total=False):
    namespace: str | None
    """The namespace; ``None``, the default, for all."""
    labels: str
    fields: str
    shard: str
    """A shard selector; ignored without the feature ``sharding``."""
    form: ObjectForm
    """Whole objects (the default), their metadata, or a table for people."""
    include: Include
    """The part of each object that a table has beside its cells."""
    match: str
    """``resourceVersionMatch``: ``Exact`` or ``NotOlderThan``."""


class ListRequestOptions(CollectionOptions, total=False):
    """The options of ``Cluster.list``."""

    resource_version: str
    """"" (the default) for the newest state, "0" for any state (the limit is ignored then), a
    version for the state of that version or a later one."""
    limit: int
    """Objects in a page; 0, the default, for all."""
    continue_token: str
    """``metadata.continue`` of the page before."""


class WatchRequestOptions(CollectionOptions, total=False):
    """The options of ``Cluster.watch``."""

    resource_version: str
    """The version to start from. "" (the default) and "0" start with an ADDED for each object."""
    bookmarks: bool
    """True if the client understands bookmarks; False by default."""
    send_initial_events: bool | None
    """True to start with an ADDED for each object, then a bookmark that marks the end of the
    initial events, if ``bookmarks`` (a WatchList). Needs the match ``NotOlderThan``."""
    timeout: float | None
    """Seconds until the watch ends; 1800 by default."""


def make_list_query(options: ListRequestOptions) -> ListQuery:
    """Return the query of a list; raise ``TypeError`` if an option doesn't exist."""
    _check_names(options, ListRequestOptions.__optional_keys__)
    return ListQuery(
        selectors=_make_selectors(options),
        resource_version=options.get("resource_version", ""),
        match=options.get("match", ""),
        limit=options.get("limit", 0),
        continue_token=options.get("continue_token", ""),
        form=options.get("form", "whole"),
        include=options.get("include", "Metadata"),
    )


def make_watch_query(options: WatchRequestOptions) -> WatchQuery:
    """Return the query of a watch; raise ``TypeError`` if an option doesn't exist."""
    _check_names(options, WatchRequestOptions.__optional_keys__)
    return WatchQuery(
        selectors=_make_selectors(options),
        resource_version=options.get("resource_version", ""),
        match=options.get("match", ""),
        bookmarks=options.get("bookmarks", False),
        send_initial_events=options.get("send_initial_events"),
        timeout=options.get("timeout"),
        form=options.get("form", "whole"),
        include=options.get("include", "Metadata"),
    )


def _check_names(options: CollectionOptions, known: Set[str]) -> None:
    unknown = sorted(options.keys() - known)
    if unknown:
        listed = ", ".join(sorted(known))
        raise TypeError(f"there is no option {unknown[0]!r}; the options are: {listed}")


def _make_selectors(options: CollectionOptions) -> SelectorQuery:
    return SelectorQuery(
        namespace=options.get("namespace"),
        labels=options.get("labels", ""),
        fields=options.get("fields", ""),
        shard=options.get("shard", ""),
    )


@dataclass(frozen=True, slots=True)
class CollectionRequests:
    storage: Storage
    registry: Registry
    definitions: DefinitionController
    features: Features
    watch_buffer: int
    """Lines that can wait in a watch."""

    def list_page(self, resource: str | Resource, query: ListQuery) -> bytes:
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
        encoding = collection.encoding
        return Selection.parse(
            encoding,
            selectors,
            sharding=self.features.sharding,
            selectable_fields=self.definitions.selectable_fields(encoding.resource),
        )
