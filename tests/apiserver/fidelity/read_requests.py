"""The read requests to both servers: paths and headers, by purpose.

``{before}`` is a resourceVersion, ``{token}`` the continue token of the previous page. Both differ
between the servers.
"""

from tests.apiserver.fidelity.server_pair import IN_DEFAULT, WIDGETS

BIG = "/apis/example.com/v1/namespaces/big/widgets"
WATCHED = "/apis/example.com/v1/watch/namespaces/default/widgets"
SHORT = "watch=1&timeoutSeconds=1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
WATCH_LIST = (
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)

GET_REQUESTS: dict[str, tuple[str, dict[str, str]]] = {
    "all of a namespace": (IN_DEFAULT, {}),
    "all of them": (WIDGETS, {}),
    "none": ("/apis/example.com/v1/namespaces/empty/widgets", {}),
    "a page": (f"{IN_DEFAULT}?limit=2", {}),
    "the next page": (f"{IN_DEFAULT}?limit=2&continue={{token}}", {}),
    "a page of all": (f"{WIDGETS}?limit=2", {}),
    "the next page of all": (f"{WIDGETS}?limit=2&continue={{token}}", {}),
    "a page of a selection": (f"{WIDGETS}?limit=1&labelSelector=app=shop", {}),
    "any version, with a limit": (f"{IN_DEFAULT}?resourceVersion=0&limit=1", {}),
    "exactly a version": (
        f"{IN_DEFAULT}?resourceVersion={{before}}&resourceVersionMatch=Exact",
        {},
    ),
    "no older than": (
        f"{IN_DEFAULT}?resourceVersion={{before}}&resourceVersionMatch=NotOlderThan",
        {},
    ),
    "a version with a limit": (f"{IN_DEFAULT}?resourceVersion={{before}}&limit=1", {}),
    "a version": (f"{IN_DEFAULT}?resourceVersion={{before}}", {}),
    "by label": (f"{IN_DEFAULT}?labelSelector=app%3Dshop", {}),
    "by field": (f"{IN_DEFAULT}?fieldSelector=metadata.name%3Da", {}),
    "a bad label selector": (f"{IN_DEFAULT}?labelSelector=a%3D%3D%3D", {}),
    "a bad field selector": (f"{IN_DEFAULT}?fieldSelector=spec.nope%3D1", {}),
    "no field selector": (f"{IN_DEFAULT}?fieldSelector=spec.nope", {}),
    "a bad token": (f"{IN_DEFAULT}?continue=garbage", {}),
    "no token": (f"{IN_DEFAULT}?continue=!", {}),
    "no version": (f"{IN_DEFAULT}?resourceVersion=abc", {}),
    "a watch from no version": (f"{IN_DEFAULT}?watch=1&resourceVersion=abc", {}),
    "a match without a version": (f"{IN_DEFAULT}?resourceVersionMatch=Exact", {}),
    "exactly any": (f"{IN_DEFAULT}?resourceVersion=0&resourceVersionMatch=Exact", {}),
    "an unknown match": (f"{IN_DEFAULT}?resourceVersion=5&resourceVersionMatch=Newest", {}),
    "a token and a version": (f"{IN_DEFAULT}?resourceVersion=5&continue={{token}}", {}),
    "a token and a match": (
        f"{IN_DEFAULT}?resourceVersion=5&resourceVersionMatch=Exact&continue={{token}}",
        {},
    ),
    "no limit": (f"{IN_DEFAULT}?limit=x", {}),
    "less than no limit": (f"{IN_DEFAULT}?limit=-1", {}),
    "initial events of a list": (f"{IN_DEFAULT}?sendInitialEvents=true", {}),
    "a WatchList without a match": (f"{IN_DEFAULT}?watch=1&sendInitialEvents=true", {}),
    "a WatchList with another match": (
        f"{IN_DEFAULT}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        {},
    ),
    "a WatchList from no version": (f"{IN_DEFAULT}?{WATCH_LIST}&resourceVersion=abc", {}),
    "a WatchList by a bad selector": (f"{IN_DEFAULT}?{WATCH_LIST}&labelSelector=a%3D%3D%3D", {}),
    "a WatchList of an unknown resource": (
        f"/apis/example.com/v1/namespaces/default/gadgets?{WATCH_LIST}",
        {},
    ),
    "a watch with a match": (f"{IN_DEFAULT}?watch=1&resourceVersionMatch=NotOlderThan", {}),
    "too large": (f"{IN_DEFAULT}?resourceVersion=99999999", {}),
    "exactly too large": (
        f"{IN_DEFAULT}?resourceVersion=99999999&resourceVersionMatch=Exact",
        {},
    ),
    "the old form of a watch": (f"{WATCHED}?{SHORT}", {}),
    "the old form of a watch of all": (f"/apis/example.com/v1/watch/widgets?{SHORT}", {}),
    "the old form of a watch of an object": (f"{WATCHED}/c?{SHORT}", {}),
    "the old form of a watch of no resource": (
        "/apis/example.com/v1/watch/namespaces/default/nopes",
        {},
    ),
    "an object": (f"{IN_DEFAULT}/a", {}),
    "no object": (f"{IN_DEFAULT}/nope", {}),
    "an object without its namespace": (f"{WIDGETS}/a", {}),
    "a subresource": (f"{IN_DEFAULT}/a/status", {}),
    "an unknown resource": ("/apis/example.com/v1/gadgets", {}),
    "an unknown resource in a namespace": (
        "/apis/example.com/v1/namespaces/default/gadgets",
        {},
    ),
    "an unknown version": ("/apis/example.com/v2/widgets", {}),
    "an unknown group": ("/apis/example.org/v1/widgets", {}),
    "the group": ("/apis/example.com", {}),
    "metadata": (IN_DEFAULT, {"Accept": METADATA_LIST}),
    "a page of metadata": (f"{IN_DEFAULT}?limit=1", {"Accept": METADATA_LIST}),
    "the metadata of one": (f"{IN_DEFAULT}/a", {"Accept": METADATA}),
    "one as many": (f"{IN_DEFAULT}/a", {"Accept": METADATA_LIST}),
    "many as one": (IN_DEFAULT, {"Accept": METADATA}),
    "a table": (IN_DEFAULT, {"Accept": f"{TABLE},application/json"}),
    "a page of a table": (f"{IN_DEFAULT}?limit=1", {"Accept": TABLE}),
    "a table of whole objects": (f"{IN_DEFAULT}?includeObject=Object", {"Accept": TABLE}),
    "a table of nothing else": (f"{IN_DEFAULT}?includeObject=None", {"Accept": TABLE}),
    "a table of what isn't there": (f"{IN_DEFAULT}?includeObject=All", {"Accept": TABLE}),
    "no table of what isn't there": (f"{IN_DEFAULT}?includeObject=All", {}),
    "a watch of tables of what isn't there": (
        f"{IN_DEFAULT}?watch=1&includeObject=All",
        {"Accept": TABLE},
    ),
    "anything, if it must be": (IN_DEFAULT, {"Accept": "text/html,*/*;q=0.8"}),
    "indented for curl": (IN_DEFAULT, {"User-Agent": "curl/8"}),
    "indented for a browser": (f"{IN_DEFAULT}/a", {"User-Agent": "Mozilla/5.0 (X11)"}),
    "an indented refusal": (f"{IN_DEFAULT}/nope", {"User-Agent": "Wget/1"}),
    "indented when asked": (f"{IN_DEFAULT}?pretty=true", {}),
    "not indented when asked": (f"{IN_DEFAULT}?pretty=0", {"User-Agent": "curl/8"}),
    "too short to compress": (IN_DEFAULT, {"Accept-Encoding": "gzip"}),
    "compressed": (BIG, {"Accept-Encoding": "gzip"}),
    "compressed, if one of several": (BIG, {"Accept-Encoding": "deflate, gzip"}),
    "not compressed by quality": (BIG, {"Accept-Encoding": "gzip;q=1.0"}),
    "an object, compressed": (f"{BIG}/large", {"Accept-Encoding": "gzip"}),
    "a shard where there are none": (f"{IN_DEFAULT}?shardSelector=nonsense", {}),
}
"""In the order in which they are asked: a token is that of the page before."""

WATCH_REQUESTS: dict[str, tuple[str, dict[str, str]]] = {
    "from a version": ("watch=1&resourceVersion={before}&timeoutSeconds=2", {}),
    "from any": ("watch=1&resourceVersion=0&timeoutSeconds=2", {}),
    "from none": ("watch=1&timeoutSeconds=2", {}),
    "from any, with bookmarks": (
        "watch=1&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1",
        {},
    ),
    "from the future": ("watch=1&resourceVersion=99999999&timeoutSeconds=2", {}),
    "a WatchList": (f"{WATCH_LIST}&timeoutSeconds=2", {}),
    "a WatchList no older than": (
        f"{WATCH_LIST}&resourceVersion={{before}}&timeoutSeconds=2",
        {},
    ),
    "a WatchList from the future": (
        f"{WATCH_LIST}&resourceVersion=99999999&timeoutSeconds=6",
        {},
    ),
    "a WatchList no older than any": (f"{WATCH_LIST}&resourceVersion=0&timeoutSeconds=2", {}),
    "a WatchList as this library asks": (
        "watch=true&allowWatchBookmarks=true&timeoutSeconds=2&sendInitialEvents=true"
        "&resourceVersionMatch=NotOlderThan",
        {"Accept": "application/json", "Accept-Encoding": "identity"},
    ),
    "a WatchList without bookmarks": (
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=2",
        {},
    ),
    "a WatchList of a selection": (
        f"{WATCH_LIST}&labelSelector=app%3Dshop&timeoutSeconds=2",
        {},
    ),
    "a WatchList of a name": (
        f"{WATCH_LIST}&fieldSelector=metadata.name%3Da&timeoutSeconds=2",
        {},
    ),
    "a WatchList of nothing": (
        f"{WATCH_LIST}&labelSelector=app%3Dnone&timeoutSeconds=2",
        {},
    ),
    "a WatchList with a limit": (f"{WATCH_LIST}&limit=1&timeoutSeconds=2", {}),
    "no initial events": (
        "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=2",
        {},
    ),
    "a selection": (
        "watch=1&resourceVersion={before}&labelSelector=app%3Dshop&timeoutSeconds=2",
        {},
    ),
    "metadata": (
        f"{WATCH_LIST}&timeoutSeconds=2",
        {"Accept": METADATA},
    ),
    "tables": (f"{WATCH_LIST}&timeoutSeconds=2", {"Accept": f"{TABLE},application/json"}),
    "tables from a version": (
        "watch=1&resourceVersion={before}&timeoutSeconds=2",
        {"Accept": TABLE},
    ),
    "tables of whole objects": (
        f"{WATCH_LIST}&includeObject=Object&timeoutSeconds=2",
        {"Accept": TABLE},
    ),
    "tables of nothing else": (
        f"{WATCH_LIST}&includeObject=None&timeoutSeconds=2",
        {"Accept": TABLE},
    ),
    "tables from the future": (
        f"{WATCH_LIST}&resourceVersion=99999999&timeoutSeconds=6",
        {"Accept": TABLE},
    ),
    "for curl": ("watch=1&resourceVersion={before}&timeoutSeconds=2", {"User-Agent": "curl/8"}),
    "compressed, but no WatchList": (
        "watch=1&resourceVersion={before}&timeoutSeconds=2",
        {"Accept-Encoding": "gzip"},
    ),
}
"""Watches of widgets in ``default``, by their query."""
