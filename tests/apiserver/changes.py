"""What is written to both servers, by what it is for: the write side of ``questions``.

Each series goes to objects of its own, in the order in which it stands here. ``{version}`` is the
resourceVersion in the answer before: each server's own.
"""

from copy import deepcopy
from typing import NamedTuple

from tests.apiserver.admin import WIDGET_CRD, Json
from tests.apiserver.twins import GIZMOS, IN_DEFAULT


def _gizmo_crd() -> Json:
    crd = deepcopy(WIDGET_CRD)
    crd["metadata"]["name"] = "gizmos.example.com"
    crd["spec"]["names"] = {"kind": "Gizmo", "plural": "gizmos"}
    version = crd["spec"]["versions"][0]
    version["subresources"] = {"status": {}}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = anything
    return crd


GIZMO_CRD = _gizmo_crd()
"""Widgets with a status subresource."""

JSON = "application/json"
MERGE = "application/merge-patch+json"
PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Change(NamedTuple):
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
    Change("POST", GIZMOS, gizmo("s", rest='"spec":{"size":1},"status":{"x":1}')),
    Change("PUT", f"{GIZMOS}/s", gizmo("s", VERSION, '"spec":{"size":2},"status":{"x":2}')),
    Change(
        "PUT",
        f"{GIZMOS}/s/status",
        gizmo("s", VERSION + ',"labels":{"l":"x"}', '"spec":{"size":9},"status":{"x":3}'),
    ),
    Change("PUT", f"{GIZMOS}/s/status", gizmo("s", VERSION, '"status":{"x":3}')),
    Change("PUT", f"{GIZMOS}/s/status", gizmo("s", '"resourceVersion":"1"', '"status":{}')),
    Change("PUT", f"{GIZMOS}/s/status", gizmo("s", rest='"status":{}')),
    Change("PUT", f"{GIZMOS}/s/status", gizmo("t", rest='"status":{}')),
    Change("PUT", f"{GIZMOS}/nope/status", gizmo("nope", rest='"status":{}')),
    Change("PATCH", f"{GIZMOS}/s/status", '{"spec":{"size":7},"status":{"y":7}}', MERGE),
    Change("PATCH", f"{GIZMOS}/s/status", '[{"op":"remove","path":"/status/y"}]', PATCH),
    Change("PATCH", f"{GIZMOS}/s", '{"status":{"x":99}}', MERGE),
    Change("PATCH", f"{GIZMOS}/s", '{"other":{"x":99}}', MERGE),
    Change("PATCH", f"{GIZMOS}/s", '{"metadata":{"labels":{"m":"1"}}}', MERGE),
    Change("GET", f"{GIZMOS}/s/status"),
    Change("POST", f"{GIZMOS}/s/status", '{"status":{}}'),
    Change("DELETE", f"{GIZMOS}/s/status"),
    Change("PATCH", f"{GIZMOS}/s/scale", "{}", MERGE),
    Change("PUT", f"{GIZMOS}/s/status", gizmo("s", VERSION)),
    Change("POST", IN_DEFAULT, widget("none", rest='"data":1')),
    Change("PATCH", f"{IN_DEFAULT}/none", '{"status":{"x":2}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/none/status", '{"status":{"x":2}}', MERGE),
]

PATCHED = f"{IN_DEFAULT}/p"


def operation(name: str, path: str, **more: str) -> str:
    rest = "".join(f',"{key.strip("_")}":{value}' for key, value in more.items())
    return f'{{"op":"{name}","path":"{path}"{rest}}}'


JSON_PATCHES = [
    Change(
        "POST", IN_DEFAULT, widget("p", '"labels":{"a":"1"}', '"spec":{"l":[1,2,3],"m":{"x":1}}')
    ),
    *(
        Change("PATCH", PATCHED, f"[{operations}]", PATCH)
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
    Change("PATCH", PATCHED, "{}", PATCH),
    Change("PATCH", PATCHED, "[", PATCH),
    Change("PATCH", f"{IN_DEFAULT}/nope", "[]", PATCH),
]

MERGES = [
    Change("POST", IN_DEFAULT, widget("m", rest='"data":1')),
    Change("PATCH", f"{IN_DEFAULT}/m", "[1]", MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m", "{", MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m", "{}", "text/plain"),
    Change("PATCH", f"{IN_DEFAULT}/m", '{"metadata":{"name":"zz"}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m", '{"metadata":{"uid":"zz"}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m", '{"metadata":{"namespace":"x"}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m", '{"kind":"Foo"}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m?force=true", "{}", MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m?dryRun=All", '{"data":7}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/m?dryRun=Some", '{"data":7}', MERGE),
    Change("PUT", f"{IN_DEFAULT}/m?dryRun=All", widget("m", VERSION)),
    Change("PUT", f"{IN_DEFAULT}/m", widget("m", '"uid":"zz"')),
    Change("PUT", f"{IN_DEFAULT}/m", widget("m", '"resourceVersion":"x"')),
    Change("POST", f"{IN_DEFAULT}?dryRun=All", widget("dry")),
    Change("GET", f"{IN_DEFAULT}/dry"),
    Change("POST", IN_DEFAULT, widget("n", '"namespace":"other"')),
    Change("POST", IN_DEFAULT, widget("n", '"resourceVersion":"5"')),
    Change("POST", IN_DEFAULT, widget("n", '"uid":"5","generation":7')),
]

DELETIONS = [
    Change("POST", IN_DEFAULT, widget("d")),
    Change("DELETE", f"{IN_DEFAULT}/d", '{"preconditions":{"uid":"x"}}'),
    Change("DELETE", f"{IN_DEFAULT}/d", '{"preconditions":{"resourceVersion":"3"}}'),
    Change("DELETE", f"{IN_DEFAULT}/d", '{"propagationPolicy":"Nope"}'),
    Change("DELETE", f"{IN_DEFAULT}/d?dryRun=All"),
    Change("DELETE", f"{IN_DEFAULT}/d", '{"propagationPolicy":"Orphan"}'),
    Change("DELETE", f"{IN_DEFAULT}/d"),
    Change("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"finalizers":["orphan","a/b"]}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"deletionTimestamp":null}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"labels":{"late":"x"}}}', MERGE),
    Change("PATCH", f"{IN_DEFAULT}/d", '{"metadata":{"finalizers":null}}', MERGE),
    Change("GET", f"{IN_DEFAULT}/d"),
    Change("POST", IN_DEFAULT, widget("d")),
    Change("DELETE", f"{IN_DEFAULT}/d?propagationPolicy=Foreground"),
    Change("PATCH", f"{IN_DEFAULT}/d", '[{"op":"remove","path":"/metadata/finalizers"}]', PATCH),
    Change("POST", IN_DEFAULT, widget("d", '"finalizers":["a/b"]')),
    Change(
        "DELETE", f"{IN_DEFAULT}/d", '{"gracePeriodSeconds":30,"propagationPolicy":"Background"}'
    ),
    Change("PUT", f"{IN_DEFAULT}/d", widget("d", VERSION)),
    Change("POST", IN_DEFAULT, widget("d")),
    Change(
        "DELETE",
        f"{IN_DEFAULT}/d",
        '{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}',
    ),
]

APPLIED = f"{IN_DEFAULT}/a1"
ONE, TWO = f"{APPLIED}?fieldManager=one", f"{APPLIED}?fieldManager=two"
OWNED = f"{IN_DEFAULT}/o1"
SHARED = f"{IN_DEFAULT}/e1"


def applied(path: str, name: str, metadata: str = "", rest: str = "") -> Change:
    return Change("PATCH", path, widget(name, metadata, rest), APPLY)


def owner(name: str) -> str:
    reference = f'{{"apiVersion":"v1","kind":"K","name":"{name}","uid":"{name}"}}'
    return f'"finalizers":["{name}/x"],"ownerReferences":[{reference}]'


WHOLE = '"spec":{"size":1,"l":[1,2],"m":{"x":1,"y":{}},"e":{},"el":[]}'

APPLIES = [
    applied(APPLIED, "a1"),
    applied(ONE, "a1", '"labels":{"a":"1"}', WHOLE),
    applied(ONE, "a1", '"labels":{"a":"1"}', WHOLE),
    applied(TWO, "a1", rest='"spec":{"size":2}'),
    applied(TWO, "a1", rest='"spec":{"size":2,"l":[3],"m":{"x":5}}'),
    applied(TWO, "a1", rest='"spec":{"size":1,"n":1}'),
    applied(f"{TWO}&force=true", "a1", rest='"spec":{"size":7,"n":1}'),
    applied(ONE, "a1", '"labels":{"a":"1"}', '"spec":{"l":[1,2],"m":{"y":{}}}'),
    Change("PATCH", f"{APPLIED}?fieldManager=hand", '{"spec":{"size":8,"q":1}}', MERGE),
    applied(TWO, "a1", rest='"spec":{"size":9}'),
    applied(TWO, "a1", rest='"spec":{"size":9,"l":[]}'),
    applied(TWO, "a1"),
    applied(f"{ONE}&dryRun=All", "a1", rest='"spec":{"dry":1}'),
    applied(ONE, "a1"),
    applied(ONE, "other"),
    applied(ONE, "a1", '"managedFields":[]'),
    applied(ONE, "a1", '"resourceVersion":"1"'),
    applied(ONE, "a1", '"uid":"1"'),
    applied(f"{IN_DEFAULT}/new?fieldManager=one", "new", '"uid":"1"'),
    Change("PATCH", ONE, '{"metadata":{"name":"a1"}}', APPLY),
    Change("PATCH", ONE, '{"apiVersion":"example.com/v1","kind":"Gadget"}', APPLY),
    Change("PATCH", f"{APPLIED}?fieldManager=hand", '{"metadata":{"managedFields":[{}]}}', MERGE),
    applied(ONE, "a1", rest='"spec":{"b":1}'),
    applied(ONE, "a1", rest='"spec":{"size":1}'),
    # what several own
    applied(f"{OWNED}?fieldManager=one", "o1", owner("u1")),
    applied(f"{OWNED}?fieldManager=two", "o1", owner("u2")),
    applied(f"{OWNED}?fieldManager=one", "o1"),
    Change("PATCH", f"{OWNED}?fieldManager=hand", '{"metadata":{"finalizers":null}}', MERGE),
    # maps that are left by one, and by all
    applied(f"{SHARED}?fieldManager=one", "e1", rest='"spec":{"a":1}'),
    applied(f"{SHARED}?fieldManager=two", "e1", rest='"spec":{"m":{"y":1}}'),
    applied(f"{SHARED}?fieldManager=one", "e1", rest='"spec":{"m":{"x":1}}'),
    applied(f"{SHARED}?fieldManager=two", "e1"),
    applied(f"{SHARED}?fieldManager=one", "e1"),
    # a status
    Change("PATCH", f"{GIZMOS}/g/status?fieldManager=one", gizmo("g", rest='"status":{}'), APPLY),
    Change(
        "PATCH",
        f"{GIZMOS}/g?fieldManager=one",
        gizmo("g", rest='"spec":{"a":1},"status":{"a":1}'),
        APPLY,
    ),
    Change(
        "PATCH",
        f"{GIZMOS}/g/status?fieldManager=one",
        gizmo("g", '"labels":{"x":"y"}', '"spec":{"a":3},"status":{"a":1}'),
        APPLY,
    ),
    Change(
        "PATCH",
        f"{GIZMOS}/g/status?fieldManager=two",
        gizmo("g", rest='"status":{"a":2}'),
        APPLY,
    ),
    # created and updated by name
    Change("POST", f"{IN_DEFAULT}?fieldManager=hand", widget("u1", rest='"spec":{"m":{"x":1}}')),
    applied(f"{IN_DEFAULT}/u1?fieldManager=one", "u1", rest='"spec":{"m":{"x":2}}'),
    applied(f"{IN_DEFAULT}/u1?fieldManager=one&force=1", "u1", rest='"spec":{"m":{"x":2}}'),
    applied(f"{IN_DEFAULT}/u1?fieldManager=two", "u1", rest='"spec":{"m":5}'),
    Change("PUT", f"{IN_DEFAULT}/u1?fieldManager=put", widget("u1", rest='"spec":{"m":{"x":3}}')),
]

WRITTEN = {
    "the status": STATUS,
    "a JSON patch": JSON_PATCHES,
    "a merge patch": MERGES,
    "a deletion": DELETIONS,
}
"""Compared but for managedFields."""
