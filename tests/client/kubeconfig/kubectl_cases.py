"""Kubeconfig files, and what kubectl 1.37 sends with each of them.

``tests/clients/test_kubectl_kubeconfigs.py`` runs kubectl on each file, ``test_kubectl_parity.py``
reads it here. A file is read with ``$KUBECONFIG``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SERVER = "127.0.0.1:6443"
"""The address in the files, for which a test writes that of its own server."""

REFUSED = "refused"
"""Nothing is sent."""
POD = "pod"
"""The files choose no cluster: a pod's service account is used, and elsewhere kubectl's default."""
ASKS = "asks"
"""kubectl asks for a user and a password on the terminal. The library is anonymous."""
SENT = "/one Bearer tok"


@dataclass(frozen=True)
class Case:
    name: str
    content: str
    kubectl: str
    """The path of the server, the ``Authorization`` header and headers of impersonation that
    kubectl sends; or ``REFUSED``, ``POD`` or ``ASKS``."""
    ours: str = ""
    """What the library does instead, if this differs."""
    encoding: str = "utf-8"
    more: tuple[str, ...] = ()
    """The content of further files of the list in ``$KUBECONFIG``."""

    def write(self, folder: Path, server: str = SERVER, scheme: str = "https") -> str:
        """Write the files, and return the value of ``$KUBECONFIG``."""
        paths: list[Path] = []
        for content in (self.content, *self.more):
            paths.append(folder / f"config-{len(paths)}")
            text = content.replace(SERVER, server).replace("https:", f"{scheme}:")
            paths[-1].write_bytes(text.encode(self.encoding))
        return os.pathsep.join(map(str, paths))


def alike(result: str, files: Mapping[str, str]) -> list[Case]:
    """Return the cases of files that lead to one result."""
    return [Case(name, content, result) for name, content in files.items()]


CLUSTERS = f"""\
clusters:
- name: main
  cluster: {{server: "https://{SERVER}/one", insecure-skip-tls-verify: true}}
"""
CONTEXTS = """\
contexts:
- name: main
  context: {cluster: main, user: main}
"""
HEAD = f"apiVersion: v1\nkind: Config\ncurrent-context: main\n{CLUSTERS}{CONTEXTS}"


def user(*fields: str) -> str:
    """Return a file whose user has these fields."""
    return HEAD + "users:\n- name: main\n  user:\n" + "".join(f"    {each}\n" for each in fields)


def password(text: str) -> str:
    return user("username: me", f"password: {text}")


def basic(encoded: str) -> str:
    return f"/one Basic {encoded}"


def impersonating(*fields: str) -> str:
    return user("token: tok", "as: me", *fields)


def flag(text: str) -> str:
    """Return a file in which the check of the certificate is switched off by ``text``."""
    return TOKEN.replace("verify: true", f"verify: {text}")


def named(text: str) -> str:
    """Return a file in which every name is written as ``text``."""
    return TOKEN.replace("name: main", f"name: {text}").replace(": main", f": {text}")


def with_users(users: str, before: str = "") -> str:
    return f"{before}\n{HEAD}users: {users}\n"


TOKEN = user("token: tok")
OTHER = TOKEN.replace("main", "other").replace(": tok\n", ": two\n").replace("/one", "/two")
"""A file of another context, whose cluster has another path."""
USERS = "users:\n- {name: main, user: {token: tok}}\n"
JSON = f"""\
{{
\t"current-context": "main",
\t"clusters": [
\t\t{{"name": "main", "cluster": {{"server": "https://{SERVER}/one",
\t\t\t"insecure-skip-tls-verify": true}}}}
\t],
\t"contexts": [{{"name": "main", "context": {{"cluster": "main", "user": "main"}}}}],
\t"users":\t[{{"name": "main", "user": {{"token": "tok"}}}}]
}}
"""
BOMB = "x-a: &a [b, b, b, b, b, b, b, b]\n" + "".join(
    f"x-{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)
"""279 bytes that stand for two million items."""

CASES = [
    # -- no cluster ------------------------------------------------------------------------------
    *alike(
        POD,
        {
            "an empty file": "",
            "white space": " \n\n",
            "a comment": "# nothing yet\n",
            "a separator alone": "---\n",
            "null": "null\n",
            "an empty mapping": "{}\n",
            "version and kind alone": "apiVersion: v1\nkind: Config\n",
            "what kubectl writes for nothing": (
                "apiVersion: v1\nclusters: null\ncontexts: null\ncurrent-context: ''\n"
                "kind: Config\npreferences: {}\nusers: null\n"
            ),
            "users alone": "users:\n- {name: main, user: {token: tok}}\n",
            "no current context": TOKEN.replace("current-context: main", ""),
            "no clusters": TOKEN.replace(CLUSTERS, ""),
            "a context without cluster": TOKEN.replace("cluster: main, ", ""),
            "an empty first document": f"---\n---\n{TOKEN}",
        },
    ),
    *alike(
        REFUSED,
        {
            "an unknown current context": TOKEN.replace("context: main", "context: other", 1),
            "a current context without contexts": "current-context: main\n",
        },
    ),
    # client-go is anonymous, which hides a misspelt name.
    Case("an unknown user", TOKEN.replace("user: main}", "user: nobody}"), ASKS, REFUSED),
    # kubectl's default server is its own; client-go refuses these.
    *(
        Case(
            name,
            TOKEN.replace(CLUSTERS, f"clusters: [{{name: main, cluster: {body}}}]\n"),
            POD,
            REFUSED,
        )
        for name, body in {
            "a cluster without server": "{insecure-skip-tls-verify: true}",
            "an empty cluster": "{}",
            "a null cluster": "null",
        }.items()
    ),
    # -- documents -------------------------------------------------------------------------------
    *alike(
        SENT,
        {
            "a token": TOKEN,
            "a trailing separator": f"{TOKEN}---\n",
            "a leading separator": f"---\n{TOKEN}",
            "a comment before the separator": f"# ours\n---\n{TOKEN}",
            "a second document": f"{TOKEN}---\n{TOKEN.replace('tok', 'two')}",
            "a second document that is no YAML": f"{TOKEN}---\na: [\n",
            "an end of the document": f"{TOKEN}...\n",
            "a directive": f"%YAML 1.1\n---\n{TOKEN}",
            "a byte order mark": "\ufeff" + TOKEN,
            "lines of Windows": TOKEN.replace("\n", "\r\n"),
            "umlauts": named("b\u00fcro"),
        },
    ),
    *alike(
        REFUSED,
        {
            "a NUL": f"{TOKEN}# \0\n",
            "a control character": f"{TOKEN}# \x07\n",
            "a list": "[1, 2]\n",
            "a text": "kubeconfig\n",
            "another kind": TOKEN.replace("kind: Config", "kind: Deployment"),
            "another version": TOKEN.replace("apiVersion: v1", "apiVersion: v2"),
            "a number as kind": TOKEN.replace("kind: Config", "kind: 1"),
            "brackets that stay open": f"{TOKEN}x: [\n",
        },
    ),
    Case("UTF-16 with its mark", TOKEN, SENT, encoding="utf-16"),
    Case("UTF-16 without its mark", TOKEN, REFUSED, encoding="utf-16-le"),
    Case("Latin-1", user("token: tok # \u00fc"), REFUSED, encoding="latin-1"),
    Case("a newer directive", f"%YAML 1.2\n---\n{TOKEN}", REFUSED, SENT),  # libyaml is newer
    # -- JSON and tabs ---------------------------------------------------------------------------
    *alike(
        SENT,
        {
            "JSON": JSON.replace("\t", " "),
            "JSON indented by tabs": JSON,
            "JSON on one line": " ".join(JSON.split()),
            "JSON with a comma at the end": JSON.replace('"tok"', '"tok",'),
            "a tab behind a value": user("token: tok\t"),
            "a tab behind a colon": user("token:\ttok"),
            "a tab before a comment": user("token: tok\t# mine"),
            "a tab in flow style": user("{\n\t  token: tok}"),
        },
    ),
    Case("a tab as indentation", TOKEN.replace("    token", "\ttoken"), REFUSED),
    # -- names -----------------------------------------------------------------------------------
    *alike(
        SENT,
        {
            "a date as name": named("2024-06-01"),
            "a time as name": named("2024-06-01T10:00:00Z"),
            "a version as name": named("1.30.2"),
            "a name in quotes": named("'2024'"),
            "a name with colons": named("arn:aws:eks"),
            "an equals sign as name": named("'='"),
        },
    ),
    *alike(
        REFUSED,
        {
            "a number as name": named("2024"),
            "a fraction as name": named("1.30"),
            "a boolean as name": named("on"),
            "a letter as name that is a boolean": named("y"),
            "two users of one name": TOKEN + "- name: main\n  user: {token: two}\n",
            "two clusters of one name": TOKEN.replace(CLUSTERS, CLUSTERS + CLUSTERS[10:]),
        },
    ),
    # An empty name, or none, counts as missing.
    Case("null as name", named("~"), SENT, REFUSED),
    Case("an empty name", named("''"), SENT, POD),
    Case("a user without name", TOKEN + "- user: {token: two}\n", SENT, REFUSED),
    # -- texts -----------------------------------------------------------------------------------
    Case("digits and colons", password("12:34:56"), basic("bWU6MTI6MzQ6NTY=")),
    Case("octal digits in quotes", password("'012345'"), basic("bWU6MDEyMzQ1")),
    Case("octal digits with the tag of a text", password("!!str 012345"), basic("bWU6MDEyMzQ1")),
    Case("octal digits with an unknown tag", password("!secret 012345"), basic("bWU6MDEyMzQ1")),
    Case("a date", password("2024-06-01"), basic("bWU6MjAyNC0wNi0wMQ==")),
    Case("an exponent that no number has", password("1e999"), basic("bWU6MWU5OTk=")),
    Case("a password", password("pw"), basic("bWU6cHc=")),
    *alike(
        SENT,
        {
            "a binary token": user("token: !!binary dG9r"),
            "a folded token": user("token: >-", "  tok"),
            "an unknown field": user("token: tok", "colour: 5"),
            "a field twice": user("token: one", "token: tok"),
            "a number as key": TOKEN + "5: x\n",
            "extensions of any form": TOKEN + "extensions: [{name: x, extension: [1, on, ~]}]\n",
            "a flag as a word": flag("yes"),
        },
    ),
    *alike(
        REFUSED,
        {
            "octal digits": password("012345"),
            "digits that are not octal": password("089"),
            "hexadecimal digits": password("0x1F"),
            "an exponent": password("1e3"),
            "digits with underscores": password("1_000"),
            "yes": password("yes"),
            "infinity": password(".inf"),
            "a token of digits": user("token: 12345"),
            "a token that is an exponent": user("token: 12e45"),
            "a binary token that is no base64": user("token: !!binary '*'"),
            "the tag of a number": user("token: !!int tok"),
            "a list as token": user("token: [tok]"),
            "a mapping as token": user("token: {tok: tok}"),
            "a list as user": with_users("[{name: main, user: [tok]}]"),
            "a number in an unused user": TOKEN + "- name: other\n  user: {token: 5}\n",
            "a flag in quotes": flag("'true'"),
            "a flag as a number": flag("1"),
            "a server that is a number": TOKEN.replace(f'"https://{SERVER}/one"', "5"),
            "an argument that is a number": user("exec: {command: 'true', args: [5]}"),
            "a variable that is a number": user("exec: {env: [{name: A, value: 5}]}"),
            "an id-token that is a number": user("auth-provider: {config: {id-token: 5}}"),
            "a colour of a wrong type": TOKEN + "preferences: {colors: 5}\n",
            "clusters that are a mapping": TOKEN.replace("clusters:\n- name", "clusters:\n  name"),
            "a null key": TOKEN + "~: x\n",
            "infinity in an unknown field": TOKEN + "x: .inf\n",
        },
    ),
    *alike(
        ASKS,
        {
            "no user": TOKEN.replace(", user: main}", "}"),
            "no fields of a user": with_users("[{name: main, user: {}}]"),
            "a null user": with_users("[{name: main, user: null}]"),
            "a null token": user("token: ~"),
            "an empty token": user("token: ''"),
            "a field of another case": user("Token: tok"),
        },
    ),
    Case("two methods", user("token: tok", "username: me"), REFUSED, SENT),
    Case(
        "groups",
        impersonating("as-groups: [a, b]"),
        f"{SENT} Impersonate-Group=a Impersonate-Group=b Impersonate-User=me",
    ),
    *alike(
        REFUSED,
        {
            "a group that is a number": impersonating("as-groups: [5]"),
            "groups that are a text": impersonating("as-groups: a"),
            "an extra that is a number": impersonating("as-user-extra: {team: [5]}"),
            "groups without user": user("token: tok", "as-groups: [a]"),
        },
    ),
    # -- aliases ---------------------------------------------------------------------------------
    *alike(
        SENT,
        {
            "an alias": user("x: &y tok", "token: *y"),
            "an alias of a mapping": with_users("[{name: main, user: *u}]", "x: &u {token: tok}"),
            "a merge": with_users(
                "[{name: main, user: {<<: *u, token: tok}}]", "x: &u {token: one}"
            ),
            "a merge behind its key": with_users(
                "[{name: main, user: {token: one, <<: *u}}]", "x: &u {token: tok}"
            ),
            "a merge of several": with_users(
                "[{name: main, user: {<<: [*u, *v]}}]", "x: [&u {token: tok}, &v {token: two}]"
            ),
            "many aliases": TOKEN + "x: [&a {b: c}" + ", *a" * 200 + "]\n",
            "a depth of 300": TOKEN + f"x: {'[' * 300}{']' * 300}\n",
        },
    ),
    *alike(
        REFUSED,
        {
            "a merge of a text": TOKEN + "<<: x\n",
            "an alias of nothing": TOKEN + "x: *y\n",
            "an alias of itself": TOKEN + "x: &y [*y]\n",
            "aliases that expand to millions": TOKEN + BOMB,
            "a depth of 20,000": TOKEN + f"x: {'[' * 20000}{']' * 20000}\n",
        },
    ),
    # -- several files ---------------------------------------------------------------------------
    Case("two contexts", TOKEN, SENT, more=(OTHER,)),
    Case("two contexts in the other order", OTHER, "/two Bearer two", more=(TOKEN,)),
    Case(
        "a current context in the second file",
        TOKEN.replace("current-context: main", "current-context: ''"),
        SENT,
        more=(OTHER.replace("current-context: other", "current-context: main"),),
    ),
    Case(
        "a file for each section",
        CONTEXTS,
        SENT,
        more=(CLUSTERS, f"current-context: main\n{USERS}"),
    ),
    Case("an empty first file", "", SENT, more=(TOKEN,)),
    Case("empty files", "", POD, more=("# nothing\n", "{}\n")),
    Case("a user in two files", user("token: one"), "/one Bearer one", more=(TOKEN,)),
    Case("a cluster in two files", TOKEN, SENT, more=(TOKEN.replace("/one", "/two"),)),
    Case("a null section in the first file", "users: null\n", SENT, more=(TOKEN,)),
    Case("a second file that is no YAML", TOKEN, REFUSED, more=("a: [\n",)),
    Case("a second file of another kind", TOKEN, REFUSED, more=("kind: Pod\n",)),
    Case("a second file with a wrong type", TOKEN, REFUSED, more=(OTHER + "extensions: 5\n",)),
]
