"""The write requests to both servers, by purpose.

Each series is sent to objects of its own, in the order of this module. ``{version}`` is the
resourceVersion in the previous response of the same server.
"""

from copy import deepcopy
from typing import NamedTuple

from tests.apiserver.fidelity.server_pair import GIZMOS, IN_DEFAULT
from tests.apiserver.server.admin import WIDGET_CRD, Json


def _gizmo_crd() -> Json:
    crd = deepcopy(WIDGET_CRD)
    crd["metadata"]["name"] = "gizmos.example.com"
    crd["spec"]["names"] = {"kind": "Gizmo", "plural": "gizmos"}
    version = crd["spec"]["versions"][0]
    version["subresources"] = {"status": {}}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = anything
    return crd


def _zone_crd() -> Json:
    crd = _gizmo_crd()
    crd["metadata"]["name"] = "zones.example.com"
    crd["spec"] |= {"scope": "Cluster", "names": {"kind": "Zone", "plural": "zones"}}
    return crd


GIZMO_CRD = _gizmo_crd()
"""Widgets with a status subresource."""
ZONE_CRD = _zone_crd()
"""Cluster-scoped objects with a status subresource."""

JSON = "application/json"
MERGE = "application/merge-patch+json"
PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"


class WriteRequest(NamedTuple):
    """One request."""

    method: str
    path: str
    body: str = ""
    kind: str = JSON


def gizmo(name: str, metadata: str = "", rest: str = "") -> str:
    return _object("Gizmo", name, metadata, rest)


def widget(name: str, metadata: str = "", rest: str = "") -> str:
    return _object("Widget", name, metadata, rest)


def _object(kind: str, name: str, metadata: str, rest: str) -> str:
    named = f'"name":"{name}"' + (f",{metadata}" if metadata else "")
    more = f",{rest}" if rest else ""
    return f'{{"apiVersion":"example.com/v1","kind":"{kind}","metadata":{{{named}}}{more}}}'


VERSION = '"resourceVersion":"{version}"'

STATUS = [
    WriteRequest("POST", GIZMOS, gizmo("s", rest='"spec":{"size":1},"status":{"x":1}')),
    WriteRequest("PUT", f"{GIZMOS}/s", gizmo("s", VERSION, '"spec":{"size":2},"status":{"x":2}')),
    WriteRequest(
        "PUT",
        f"{GIZMOS}/s/status",
        gizmo("s", VERSION + ',"labels":{"l":"x"}', '"spec":{"size":9},"status":{"x":3}'),
    ),
    WriteRequest("PUT", f"{GIZMOS}/s/status", gizmo("s", VERSION, '"status":{"x":3}')),
    WriteRequest("PUT", f"{GIZMOS}/s/status", gizmo("s", '"resourceVersion":"1"', '"status":{}')),
    WriteRequest("PUT", f"{GIZMOS}/s/status", gizmo("s", rest='"status":{}')),
    WriteRequest("PUT", f"{GIZMOS}/s/status", gizmo("t", rest='"status":{}')),
    WriteRequest("PUT", f"{GIZMOS}/nope/status", gizmo("nope", rest='"status":{}')),
    WriteRequest("PATCH", f"{GIZMOS}/s/status", '{"spec":{"size":7},"status":{"y":7}}', MERGE),
    WriteRequest("PATCH", f"{GIZMOS}/s/status", '[{"op":"remove","path":"/status/y"}]', PATCH),
    WriteRequest("PATCH", f"{GIZMOS}/s", '{"status":{"x":99}}', MERGE),
    WriteRequest("PATCH", f"{GIZMOS}/s", '{"other":{"x":99}}', MERGE),
    WriteRequest("PATCH", f"{GIZMOS}/s", '{"metadata":{"labels":{"m":"1"}}}', MERGE),
    WriteRequest("GET", f"{GIZMOS}/s/status"),
    WriteRequest("POST", f"{GIZMOS}/s/status", '{"status":{}}'),
    WriteRequest("DELETE", f"{GIZMOS}/s/status"),
    WriteRequest("PATCH", f"{GIZMOS}/s/scale", "{}", MERGE),
    WriteRequest("PUT", f"{GIZMOS}/s/status", gizmo("s", VERSION)),
    WriteRequest("POST", IN_DEFAULT, widget("none", rest='"data":1')),
    WriteRequest("PATCH", f"{IN_DEFAULT}/none", '{"status":{"x":2}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/none/status", '{"status":{"x":2}}', MERGE),
]


def zone(metadata: str = "", rest: str = "") -> str:
    return _object("Zone", "z", metadata, rest)


def _json_patch(*operations: str) -> str:
    return f"[{','.join(operations)}]"


_GUARDED = f"{GIZMOS}/q"
_GUARDED_APPLY = "fieldManager=one"
_OTHER_UID = '"uid":"zz"'
GUARDS = [
    WriteRequest("POST", GIZMOS, gizmo("q", rest='"spec":{"size":1}')),
    *(
        WriteRequest("PATCH", f"{_GUARDED}{part}", body, kind)
        for part in ("/status", "")
        for body, kind in (
            ('{"metadata":{"uid":"zz"},"status":{"x":1},"spec":{"size":2}}', MERGE),
            (
                _json_patch(
                    '{"op":"test","path":"/metadata/uid","value":"zz"}',
                    '{"op":"add","path":"/spec/x","value":2}',
                ),
                PATCH,
            ),
            (
                _json_patch(
                    '{"op":"replace","path":"/metadata/uid","value":"zz"}',
                    '{"op":"add","path":"/status","value":{"x":3}}',
                ),
                PATCH,
            ),
            ('{"metadata":{"resourceVersion":"1"},"status":{"x":4}}', MERGE),
        )
    ),
    *(
        WriteRequest(
            "PATCH",
            f"{_GUARDED}{part}?{_GUARDED_APPLY}",
            gizmo("q", metadata, '"status":{"w":1},"spec":{"w":1}'),
            APPLY,
        )
        for part in ("/status", "")
        for metadata in (_OTHER_UID, '"resourceVersion":"1"')
    ),
    WriteRequest("PUT", f"{_GUARDED}/status", gizmo("q", _OTHER_UID, '"status":{"x":5}')),
    WriteRequest("PUT", _GUARDED, gizmo("q", _OTHER_UID, '"spec":{"x":5}')),
    WriteRequest("GET", _GUARDED),
    WriteRequest("DELETE", _GUARDED, '{"preconditions":{"uid":"zz"}}'),
]
"""Guards against an object that was created again under the same name."""


ZONES = "/apis/example.com/v1/zones"
CLUSTER_SCOPED = [
    WriteRequest("POST", ZONES, zone('"namespace":"web"', '"spec":{"size":1}')),
    WriteRequest("PUT", f"{ZONES}/z/status", zone(VERSION, '"status":{"x":1}')),
    WriteRequest("PUT", f"{ZONES}/z/status", zone(VERSION, '"status":{"x":1}')),
    WriteRequest("PUT", f"{ZONES}/z/status", zone('"resourceVersion":"1"', '"status":{}')),
    WriteRequest("PATCH", f"{ZONES}/z/status", '{"spec":{"size":2},"status":{"y":1}}', MERGE),
    WriteRequest("PATCH", f"{ZONES}/z/status", '[{"op":"remove","path":"/status/y"}]', PATCH),
    WriteRequest("PATCH", f"{ZONES}/z/status?dryRun=All", '{"status":{"y":1}}', MERGE),
    WriteRequest("PATCH", f"{ZONES}/z/status", '{"metadata":{"namespace":"web"}}', MERGE),
    WriteRequest("PUT", f"{ZONES}/z", zone(f'"namespace":"web",{VERSION}', '"spec":{"size":3}')),
    WriteRequest("PATCH", f"{ZONES}/z", '{"metadata":{"namespace":"web"},"spec":{"a":1}}', MERGE),
    WriteRequest("PATCH", f"{ZONES}/nope/status", '{"status":{"y":1}}', MERGE),
    WriteRequest(
        "PATCH", f"{ZONES}/z/status?fieldManager=one", zone(rest='"status":{"w":1}'), APPLY
    ),
    WriteRequest("PATCH", f"{ZONES}/z?fieldManager=one", zone(rest='"spec":{"b":1}'), APPLY),
    WriteRequest("GET", f"{ZONES}/z/status"),
    WriteRequest("DELETE", f"{ZONES}/z"),
]

OPTIONS_TARGET = f"{IN_DEFAULT}/opt"
LONG = "m" * 129
OPTIONS_AND_VERSIONS = [
    WriteRequest("POST", IN_DEFAULT, widget("opt", '"resourceVersion":"0"', '"spec":{"size":1}')),
    WriteRequest("PUT", OPTIONS_TARGET, widget("opt", '"resourceVersion":"0"')),
    WriteRequest("PUT", f"{IN_DEFAULT}/opt0", widget("opt0", '"resourceVersion":"0"')),
    WriteRequest("PATCH", OPTIONS_TARGET, '{"metadata":{"resourceVersion":"0"}}', MERGE),
    WriteRequest("PATCH", OPTIONS_TARGET, '{"metadata":{"resourceVersion":"x"}}', MERGE),
    WriteRequest("PATCH", OPTIONS_TARGET, '{"metadata":{"resourceVersion":null}}', MERGE),
    WriteRequest("DELETE", OPTIONS_TARGET, '{"preconditions":{"resourceVersion":"0"}}'),
    WriteRequest("PATCH", f"{OPTIONS_TARGET}?fieldManager={LONG}", "{}", MERGE),
    WriteRequest("PATCH", f"{OPTIONS_TARGET}?fieldManager={LONG}", widget("opt"), APPLY),
    WriteRequest("PATCH", f"{OPTIONS_TARGET}?fieldManager={LONG[1:]}", "{}", MERGE),
    WriteRequest("PATCH", f"{OPTIONS_TARGET}?fieldManager=a%07%C2%85", widget("opt"), APPLY),
    WriteRequest("PUT", f"{OPTIONS_TARGET}?fieldManager=a%0A{LONG}", widget("opt")),
    WriteRequest("POST", f"{IN_DEFAULT}?fieldManager={LONG}", widget("opt")),
    WriteRequest(
        "POST", f"{IN_DEFAULT}?dryRun=Some&fieldValidation=No&fieldManager={LONG}", widget("opt")
    ),
    WriteRequest("PATCH", f"{OPTIONS_TARGET}?dryRun=Some&force=1&fieldManager={LONG}", "{}", MERGE),
    WriteRequest("PATCH", f"{OPTIONS_TARGET}?dryRun=Some", widget("opt"), APPLY),
    *(
        WriteRequest(
            "PATCH",
            f"{IN_DEFAULT}/{name}?fieldManager=a",
            widget(name, f'"resourceVersion":"{version}"'),
            APPLY,
        )
        for name, version in (
            ("opt1", "7"),
            ("opt2", "0"),
            ("opt3", "x"),
            ("opt", "0"),
            ("opt", "x"),
            ("opt", "1"),
        )
    ),
    *(
        WriteRequest("PATCH", f"{OPTIONS_TARGET}?fieldManager=a", widget("opt", metadata), APPLY)
        for metadata in (
            '"ownerReferences":[{"uid":"a","name":"n","kind":"K","apiVersion":"v1"},{"uid":"a"}]',
            '"ownerReferences":[{"name":"n","kind":"K","apiVersion":"v1"}]',
            '"finalizers":["a/b","a/b"]',
        )
    ),
    *(
        WriteRequest("PATCH", OPTIONS_TARGET, f"[{operation}]", PATCH)
        for operation in (
            '{"op":[],"path":"/spec"}',
            '{"op":"add","path":5}',
            '{"op":"add","from":{},"path":"/spec/x"}',
            '{"op":null,"path":"/spec"}',
            '{"path":true}',
        )
    ),
    WriteRequest("POST", IN_DEFAULT, widget("opt4", '"managedFields":[{"fieldsV1":5}]')),
]
"""Query parameters, resourceVersions, and items with one key."""

WRONG_TYPES = [
    WriteRequest("POST", IN_DEFAULT, widget("types", metadata))
    for metadata in (
        '"ownerReferences":5',
        '"ownerReferences":["x"]',
        '"ownerReferences":[{"name":5}]',
        '"managedFields":5',
        '"labels":5',
        '"labels":{"a":5}',
        '"finalizers":"x"',
    )
] + [
    WriteRequest("POST", IN_DEFAULT, widget("types")),
    WriteRequest("PATCH", f"{IN_DEFAULT}/types", '{"metadata":{"ownerReferences":5}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/types", '{"metadata":{"labels":{"a":5}}}', MERGE),
]
"""Fields with the wrong type. The texts are those of the decoders, which are not the same."""

PATCHED = f"{IN_DEFAULT}/p"


def operation(name: str, path: str, **more: str) -> str:
    rest = "".join(f',"{key.strip("_")}":{value}' for key, value in more.items())
    return f'{{"op":"{name}","path":"{path}"{rest}}}'


JSON_PATCHES = [
    WriteRequest(
        "POST", IN_DEFAULT, widget("p", '"labels":{"a":"1"}', '"spec":{"l":[1,2,3],"m":{"x":1}}')
    ),
    *(
        WriteRequest("PATCH", PATCHED, f"[{operations}]", PATCH)
        for operations in (
            operation("test", "/spec/l", value="[1,2,3]"),
            operation("add", "/spec/l/1", value="9"),
            operation("add", "/spec/l/-", value="10"),
            operation("replace", "/spec/m/x", value="null"),
            operation("copy", "/spec/k", from_='"/spec/l"'),
            operation("move", "/spec/mm", from_='"/spec/m"'),
            operation("remove", "/metadata/labels/a"),
            operation("add", "/spec/a~1b~0c", value="1"),
            operation("test", "/spec/size", value="2"),
            operation("test", "/spec/nope", value="2"),
            operation("test", "/spec/nope", value="null"),
            operation("test", "/spec/nope/deeper", value="null"),
            operation("test", "/spec/mm", value='{"x":null}'),
            operation("test", "/spec/l/0", value="1.0"),
            operation("remove", "/spec/nope"),
            operation("remove", "/spec/l/9"),
            operation("remove", "/spec/l/x"),
            operation("remove", "/spec/l/-1"),
            operation("replace", "/spec/nope", value="1"),
            operation("replace", "/spec/a/b", value="1"),
            operation("replace", "/spec/l/99", value="1"),
            operation("add", "/spec/a/b", value="1"),
            operation("add", "/spec/l/99", value="1"),
            operation("add", "/spec/l/x", value="1"),
            operation("add", "/spec/l/-1", value="7"),
            operation("move", "/spec/b", from_='"/spec/no"'),
            operation("copy", "/spec/b", from_='"/spec/no"'),
            operation("copy", "/spec/b", from_='"/spec/no/deeper"'),
            operation("nope", "/spec/no"),
            operation("add", "spec", value="1"),
            operation("add", "", value="{}"),
            operation("add", "/spec/zz"),
            '{"op":"add","value":1}',
            '{"path":"/spec/zz","value":1}',
            "1",
            "",
            operation("add", "/metadata/annotations/x", value='"1"'),
            operation("replace", "/metadata/resourceVersion", value='"1"'),
            operation("replace", "/metadata/name", value='"1"'),
            ",".join([operation("add", "/spec/one", value="1"), operation("remove", "/spec/two")]),
            operation("remove", "/spec"),
        )
    ),
    WriteRequest("PATCH", PATCHED, "{}", PATCH),
    WriteRequest("PATCH", PATCHED, "[", PATCH),
    WriteRequest("PATCH", f"{IN_DEFAULT}/nope", "[]", PATCH),
]

MERGES = [
    WriteRequest("POST", IN_DEFAULT, widget("m", rest='"data":1')),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", "[1]", MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", "{", MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", "{}", "text/plain"),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", '{"metadata":{"name":"zz"}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", '{"metadata":{"uid":"zz"}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", '{"metadata":{"namespace":"x"}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m", '{"kind":"Foo"}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m?force=true", "{}", MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m?dryRun=All", '{"data":7}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/m?dryRun=Some", '{"data":7}', MERGE),
    WriteRequest("PUT", f"{IN_DEFAULT}/m?dryRun=All", widget("m", VERSION)),
    WriteRequest("PUT", f"{IN_DEFAULT}/m", widget("m", '"uid":"zz"')),
    WriteRequest("PUT", f"{IN_DEFAULT}/m", widget("m", '"resourceVersion":"x"')),
    WriteRequest("POST", f"{IN_DEFAULT}?dryRun=All", widget("dry")),
    WriteRequest("GET", f"{IN_DEFAULT}/dry"),
    WriteRequest("POST", IN_DEFAULT, widget("n", '"namespace":"other"')),
    WriteRequest("POST", IN_DEFAULT, widget("n", '"resourceVersion":"5"')),
    WriteRequest("POST", IN_DEFAULT, widget("n", '"uid":"5","generation":7')),
]

DELETIONS = [
    WriteRequest("POST", IN_DEFAULT, widget("d")),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d", '{"preconditions":{"uid":"x"}}'),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d", '{"preconditions":{"resourceVersion":"3"}}'),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d", '{"propagationPolicy":"Nope"}'),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d?dryRun=All"),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d", '{"propagationPolicy":"Orphan"}'),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d"),
    WriteRequest("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"finalizers":["orphan","a/b"]}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"deletionTimestamp":null}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"labels":{"late":"x"}}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"finalizers":null}}', MERGE),
    WriteRequest("GET", f"{IN_DEFAULT}/d"),
    WriteRequest("POST", IN_DEFAULT, widget("d")),
    WriteRequest("DELETE", f"{IN_DEFAULT}/d?propagationPolicy=Foreground"),
    WriteRequest(
        "PATCH", f"{IN_DEFAULT}/d", '[{"op":"remove","path":"/metadata/finalizers"}]', PATCH
    ),
    WriteRequest("POST", IN_DEFAULT, widget("d", '"finalizers":["a/b"]')),
    WriteRequest(
        "DELETE", f"{IN_DEFAULT}/d", '{"gracePeriodSeconds":30,"propagationPolicy":"Background"}'
    ),
    WriteRequest("PUT", f"{IN_DEFAULT}/d", widget("d", VERSION)),
    WriteRequest("POST", IN_DEFAULT, widget("d")),
    WriteRequest(
        "DELETE",
        f"{IN_DEFAULT}/d",
        '{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}',
    ),
]

APPLIED = f"{IN_DEFAULT}/a1"
MANAGER_ONE, MANAGER_TWO = f"{APPLIED}?fieldManager=one", f"{APPLIED}?fieldManager=two"
OWNED = f"{IN_DEFAULT}/o1"
SHARED = f"{IN_DEFAULT}/e1"


def apply_request(path: str, name: str, metadata: str = "", rest: str = "") -> WriteRequest:
    return WriteRequest("PATCH", path, widget(name, metadata, rest), APPLY)


def owner_metadata(name: str) -> str:
    reference = f'{{"apiVersion":"v1","kind":"K","name":"{name}","uid":"{name}"}}'
    return f'"finalizers":["{name}/x"],"ownerReferences":[{reference}]'


FULL_SPEC = '"spec":{"size":1,"l":[1,2],"m":{"x":1,"y":{}},"e":{},"el":[]}'

APPLIES = [
    apply_request(APPLIED, "a1"),
    apply_request(MANAGER_ONE, "a1", '"labels":{"a":"1"}', FULL_SPEC),
    apply_request(MANAGER_ONE, "a1", '"labels":{"a":"1"}', FULL_SPEC),
    apply_request(MANAGER_TWO, "a1", rest='"spec":{"size":2}'),
    apply_request(MANAGER_TWO, "a1", rest='"spec":{"size":2,"l":[3],"m":{"x":5}}'),
    apply_request(MANAGER_TWO, "a1", rest='"spec":{"size":1,"n":1}'),
    apply_request(f"{MANAGER_TWO}&force=true", "a1", rest='"spec":{"size":7,"n":1}'),
    apply_request(MANAGER_ONE, "a1", '"labels":{"a":"1"}', '"spec":{"l":[1,2],"m":{"y":{}}}'),
    WriteRequest("PATCH", f"{APPLIED}?fieldManager=hand", '{"spec":{"size":8,"q":1}}', MERGE),
    apply_request(MANAGER_TWO, "a1", rest='"spec":{"size":9}'),
    apply_request(MANAGER_TWO, "a1", rest='"spec":{"size":9,"l":[]}'),
    apply_request(MANAGER_TWO, "a1"),
    apply_request(f"{MANAGER_ONE}&dryRun=All", "a1", rest='"spec":{"dry":1}'),
    apply_request(MANAGER_ONE, "a1"),
    apply_request(MANAGER_ONE, "other"),
    apply_request(MANAGER_ONE, "a1", '"managedFields":[]'),
    apply_request(MANAGER_ONE, "a1", '"resourceVersion":"1"'),
    apply_request(MANAGER_ONE, "a1", '"uid":"1"'),
    apply_request(f"{IN_DEFAULT}/new?fieldManager=one", "new", '"uid":"1"'),
    WriteRequest("PATCH", MANAGER_ONE, '{"metadata":{"name":"a1"}}', APPLY),
    WriteRequest("PATCH", MANAGER_ONE, '{"apiVersion":"example.com/v1","kind":"Gadget"}', APPLY),
    WriteRequest(
        "PATCH", f"{APPLIED}?fieldManager=hand", '{"metadata":{"managedFields":[{}]}}', MERGE
    ),
    apply_request(MANAGER_ONE, "a1", rest='"spec":{"b":1}'),
    apply_request(MANAGER_ONE, "a1", rest='"spec":{"size":1}'),
    # what several own
    apply_request(f"{OWNED}?fieldManager=one", "o1", owner_metadata("u1")),
    apply_request(f"{OWNED}?fieldManager=two", "o1", owner_metadata("u2")),
    apply_request(f"{OWNED}?fieldManager=one", "o1"),
    WriteRequest("PATCH", f"{OWNED}?fieldManager=hand", '{"metadata":{"finalizers":null}}', MERGE),
    # maps that are left by one, and by all
    apply_request(f"{SHARED}?fieldManager=one", "e1", rest='"spec":{"a":1}'),
    apply_request(f"{SHARED}?fieldManager=two", "e1", rest='"spec":{"m":{"y":1}}'),
    apply_request(f"{SHARED}?fieldManager=one", "e1", rest='"spec":{"m":{"x":1}}'),
    apply_request(f"{SHARED}?fieldManager=two", "e1"),
    apply_request(f"{SHARED}?fieldManager=one", "e1"),
    # a status
    WriteRequest(
        "PATCH", f"{GIZMOS}/g/status?fieldManager=one", gizmo("g", rest='"status":{}'), APPLY
    ),
    WriteRequest(
        "PATCH",
        f"{GIZMOS}/g?fieldManager=one",
        gizmo("g", rest='"spec":{"a":1},"status":{"a":1}'),
        APPLY,
    ),
    WriteRequest(
        "PATCH",
        f"{GIZMOS}/g/status?fieldManager=one",
        gizmo("g", '"labels":{"x":"y"}', '"spec":{"a":3},"status":{"a":1}'),
        APPLY,
    ),
    WriteRequest(
        "PATCH",
        f"{GIZMOS}/g/status?fieldManager=two",
        gizmo("g", rest='"status":{"a":2}'),
        APPLY,
    ),
    # created and updated by name
    WriteRequest(
        "POST", f"{IN_DEFAULT}?fieldManager=hand", widget("u1", rest='"spec":{"m":{"x":1}}')
    ),
    apply_request(f"{IN_DEFAULT}/u1?fieldManager=one", "u1", rest='"spec":{"m":{"x":2}}'),
    apply_request(f"{IN_DEFAULT}/u1?fieldManager=one&force=1", "u1", rest='"spec":{"m":{"x":2}}'),
    apply_request(f"{IN_DEFAULT}/u1?fieldManager=two", "u1", rest='"spec":{"m":5}'),
    WriteRequest(
        "PUT", f"{IN_DEFAULT}/u1?fieldManager=put", widget("u1", rest='"spec":{"m":{"x":3}}')
    ),
]


def _named(name: str, metadata: str = "") -> WriteRequest:
    return WriteRequest("POST", IN_DEFAULT, widget(name, metadata))


METADATA_RULES = [
    *(_named(name) for name in ("UPPER_bad", "a" * 254, "-a", "a..b", "a/b", ".", "a b", "é")),
    _named("l", '"generateName":"UP_"'),
    _named("l", '"labels":{"a b":"x"}'),
    _named("l", '"labels":{"a":"x y"}'),
    _named("l", '"labels":{"a":"' + "v" * 64 + '"}'),
    _named("l", '"labels":{"/a":"x"}'),
    _named("l", '"labels":{"a/":"x"}'),
    _named("l", '"labels":{"a/b/c":"x"}'),
    _named("l", '"labels":{"A.b/c":"x"}'),
    _named("l", '"annotations":{"a b":"x"}'),
    _named("l", '"annotations":{"UPPER.example.com/a":"x y"}'),
    _named("f", '"finalizers":["x y"]'),
    _named("o", '"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":""}]'),
    _named("o", '"labels":{"a b":"x"},"finalizers":["x y"]'),
    WriteRequest("POST", "/apis/example.com/v1/namespaces/UPPER/widgets", widget("a")),
    _named("u"),
    WriteRequest("PATCH", f"{IN_DEFAULT}/u", '{"metadata":{"labels":{"a b":"x"}}}', MERGE),
    WriteRequest("PATCH", f"{IN_DEFAULT}/u", '{"metadata":{"annotations":{"a b":"x"}}}', MERGE),
]

_YAML_WIDGET = """\
apiVersion: example.com/v1
kind: Widget
metadata:
  name: yy
  labels: {on: 'yes'}
spec:
  size: 3
  when: 2026-01-01
  time: 12:30
  flag: yes
  float: 1e3
  text: "1e3"
  list: [1, 0x10, 010, ~, 1.5, off]
"""
YAML_BODIES = [
    WriteRequest("POST", IN_DEFAULT, _YAML_WIDGET, YAML),
    WriteRequest("POST", IN_DEFAULT, _YAML_WIDGET, YAML),
    WriteRequest("POST", IN_DEFAULT, widget("json"), YAML),
    WriteRequest("PUT", f"{IN_DEFAULT}/json", "spec: {a: 1}", YAML),
    WriteRequest(
        "PUT",
        f"{IN_DEFAULT}/yy",
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: yy, "
        "resourceVersion: '{version}'}\nspec: {size: 4}\n",
        YAML,
    ),
    WriteRequest("PATCH", f"{IN_DEFAULT}/yy", "spec: {size: 4}", YAML),
    WriteRequest(
        "PATCH",
        f"{IN_DEFAULT}/ya?fieldManager=m",
        "apiVersion: example.com/v1\nkind: Widget\nspec:\n  size: 5\n",
        APPLY,
    ),
    WriteRequest("GET", f"{IN_DEFAULT}/yy"),
    WriteRequest("DELETE", f"{IN_DEFAULT}/yy", "propagationPolicy: Background", YAML),
    WriteRequest("DELETE", f"{IN_DEFAULT}/json"),
    WriteRequest("DELETE", f"{IN_DEFAULT}/ya"),
]

_HERD = "/apis/example.com/v1/namespaces/herd/widgets"
_EMPTY = "/apis/example.com/v1/namespaces/empty/widgets"
COLLECTIONS = [
    *(
        WriteRequest("POST", _HERD, widget(name, metadata))
        for name, metadata in (
            ("a", '"labels":{"app":"x"}'),
            ("b", '"labels":{"app":"x"}'),
            ("c", ""),
            ("d", '"finalizers":["a.b/c"]'),
        )
    ),
    WriteRequest("DELETE", f"{_HERD}?labelSelector=app%3Dx&dryRun=All"),
    WriteRequest("DELETE", f"{_HERD}?labelSelector=app%3Dx"),
    WriteRequest("DELETE", f"{_HERD}?labelSelector=app%3D%3D%3Dx"),
    WriteRequest("DELETE", f"{_HERD}?fieldSelector=nope%3Dx"),
    WriteRequest("DELETE", f"{_HERD}?fieldSelector=metadata.name%3Dnope"),
    WriteRequest("DELETE", f"{_HERD}?dryRun=Some"),
    WriteRequest("DELETE", _HERD, '{"preconditions":{"uid":"nope"}}'),
    WriteRequest("DELETE", _HERD, '{"propagationPolicy":"Nope"}'),
    WriteRequest("DELETE", _HERD, '{"propagationPolicy":"Foreground"}'),
    WriteRequest("DELETE", f"{_HERD}?limit=1"),
    WriteRequest("DELETE", _HERD),
    WriteRequest("DELETE", _EMPTY),
    WriteRequest("DELETE", "/apis/example.com/v1/widgets"),
]

WRITES_BY_NAME = {
    "metadata that break rules": METADATA_RULES,
    "a YAML body": YAML_BODIES,
    "a deletion of a collection": COLLECTIONS,
    "the status": STATUS,
    "a uid and a version": GUARDS,
    "a cluster-scoped object": CLUSTER_SCOPED,
    "options and versions": OPTIONS_AND_VERSIONS,
    "a JSON patch": JSON_PATCHES,
    "a merge patch": MERGES,
    "a deletion": DELETIONS,
}
"""Compared but for managedFields."""
