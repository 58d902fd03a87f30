"""The structure of the package: imports, sizes, names, and the tests beside it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import aioinformer.testing

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "aioinformer"

MIRRORED = {
    "core": "_core",
    "runtime": "_runtime",
    "client": "_client",
    "operator": "_operator",
    "testing": "testing",
    "cli": "_cli",
    "adapters": "adapters",
    "errors": "errors",
}
"""The folder of ``aioinformer/`` that a folder of ``tests/`` mirrors."""

CROSS_CUTTING = {
    "adapters/asgi/test_asgi.py",
    "adapters/test_generated_models.py",
    "cli/test_beginner_errors.py",
    "cli/test_main.py",
    "client/test_beginner_errors.py",
    "client/test_secret_contents.py",
    "client/test_secret_leaks.py",
    "core/test_convergence.py",
    "runtime/test_cancellation.py",
    "runtime/test_step_duration.py",
}
"""Test modules about several modules of a layer together."""

COVERED_ELSEWHERE = (
    "__main__.py",
    "_cli/health/checks.py",
    "_client/api/client_lister_watcher.py",
    "_client/kubeconfig/files.py",
    "_client/kubeconfig/loaded_settings.py",
    "_runtime/reflector/lister_watcher.py",
    "_runtime/scopes/reflector_builder.py",
    "adapters/_recording.py",
    "adapters/_totals.py",
    "adapters/asgi/client.py",
    "adapters/asgi/feed.py",
    "adapters/asgi/probes.py",
    "adapters/asgi/responses.py",
    "adapters/kubernetes_aio.py",
    "adapters/kubernetes_asyncio.py",
    "testing/access/rights.py",
    "testing/access/tokens.py",
    "testing/access/users.py",
    "testing/cluster/collection_requests.py",
    "testing/cluster/features.py",
    "testing/cluster/history.py",
    "testing/cluster/registry.py",
    "testing/cluster/storage.py",
    "testing/server/object_requests.py",
    "testing/server/objects.py",
    "testing/server/queries.py",
    "testing/server/responses.py",
    "testing/wire/encoding.py",
    "testing/wire/served_resources.py",
    "testing/wire/statuses.py",
    "testing/wire/urls.py",
    "testing/wire/version_statuses.py",
    "testing/workload/pods.py",
    "testing/writes/events.py",
    "testing/writes/scale.py",
)
"""Modules with logic that the tests of another module cover, in the order of their names.

The set may only shrink: a new module comes with a test module of its own, and a module for which
such a test module is written leaves the set."""

MAX_MODULES = 12
"""Modules in a package: as many as a reader sees at one glance."""

MAX_LINES = 500
"""Lines in a module, which is about one idea."""

LONG_MODULES = set[str]()
"""Modules that are longer."""

MAX_FUNCTION_LINES = 60
"""Lines in a function, its docstring aside: as many as a reader sees at once."""


PROJECT = ("aioinformer", "benchmarks", "docs", "examples", "tests")
"""The folders of the project's modules."""

OPTIONAL = (
    "_client",
    "_core.cache.compressed_index",
    "_core.cache.memory",
    "_core.cache.partitions",
    "_core.cache.protocols",
    "_core.cache.query",
    "_core.cache.verification",
    "_core.cachefile",
    "_core.codec.json_scanner",
    "_core.codec.list_decoder",
    "_core.controllers",
    "_core.leaderelection",
    "_core.selectors",
    "_core.shardgroup",
    "_core.sharding",
    "_core.writing",
    "_runtime.cachefile",
    "_runtime.compaction.cache_compression",
    "_runtime.compaction.free_memory",
    "_runtime.controllers",
    "_runtime.delivery.durable_position",
    "_runtime.delivery.statistics",
    "_runtime.delivery.streams",
    "_runtime.delivery.thread_pool",
    "_runtime.informer.verifier",
    "_runtime.leaderelection",
    "_runtime.reflector.list_reader",
    "_runtime.reporting.error_copy",
    "_runtime.reporting.health",
    "_runtime.reporting.problem",
    "_runtime.scopes.group_reflectors",
    "_runtime.scopes.scope_set",
    "_runtime.scopes.shard_reader",
    "_runtime.shardgroup",
    "_runtime.tasks.scan",
    "_runtime.writing",
    "errors.delays",
)
"""Modules and packages of features that a program with one informer may not use, or of types."""

DEAR = ("attr", "bisect", "copy", "dataclasses", "email", "hashlib", "json", "random", "urllib")
"""Modules of the standard library and of others, beyond those of asyncio and msgspec, that take a
millisecond or more. An HTTP library loads most of them, so they come with the first connection."""

QUESTION_WORDS = re.compile(r"(What|Whether|Who|Whose|Whom|How|Which|When|Where|Why)\b")
"""Words that begin a question or a riddle where a statement or an imperative is due."""

QUESTION_LITERAL = re.compile(rf"""["']\s*{QUESTION_WORDS.pattern}""")
"""The beginning of a text, maybe of a docstring, with such a word."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def packages(folder: Path = PACKAGE) -> list[Path]:
    return [path.parent for path in sorted(folder.rglob("__init__.py"))]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    last, first = function.end_lineno, function.body[0]
    assert last is not None
    lines = last - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None or first.end_lineno is None:
        return lines
    return lines - (first.end_lineno - first.lineno + 1)


def is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for a function that has nothing but a docstring and an ellipsis."""
    return all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        for each in function.body
    )


@dataclass(frozen=True, slots=True)
class Definitions:
    """Names and sizes of what a module defines.

    Several tests examine them. The syntax trees themselves have a million nodes, which each
    garbage collection of the later tests would visit.
    """

    classes: list[str]
    functions: dict[str, int]
    """Lines of each function without its docstring, by its line and name."""
    docstrings: list[tuple[int, str]]
    """The docstrings with their lines, those of fields and constants too."""
    implemented: list[str]
    """The functions that have more than a docstring, unlike those of a protocol."""


@cache
def definitions(path: Path) -> Definitions:
    """Return what a module defines."""
    found = Definitions([], {}, [], [])
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ClassDef(name=name):
                found.classes.append(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.functions[f"{node.lineno} {name}"] = length(node)
                if not is_stub(node):
                    found.implemented.append(name)
            case ast.Expr(value=ast.Constant(value=str(text))):
                found.docstrings.append((node.lineno, text))
            case _:
                pass
    return found


def subject_of(test: Path, folder: Path) -> str | None:
    """Return the module or package of ``folder`` that ``test_<module>[_<aspect>].py`` names: the
    longest name, or ``None`` without one.
    """
    subjects = {path.stem.lstrip("_") for path in folder.glob("*") if path.name[0] != "."}
    words = test.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return next((name for name in names if name in subjects), None)


def is_about(test: Path, folder: Path) -> bool:
    """Return True if ``test_<module>[_<aspect>].py`` names a module or package of ``folder``."""
    return subject_of(test, folder) is not None


def has_own_tests(module: Path) -> bool:
    """Return True if a test module in the folder that mirrors the module's names the module."""
    place = module.relative_to(PACKAGE)
    layers = {folder: layer for layer, folder in MIRRORED.items()}
    layer = layers[place.parts[0]] if len(place.parts) > 1 else ""
    tests = (ROOT / "tests" / layer / Path(*place.parts[1:-1])).glob("test_*.py")
    return place.stem.lstrip("_") in {subject_of(test, module.parent) for test in tests}


def test_every_import_contract_holds() -> None:
    # In a process of its own: it sets logging up anew, which mutes every logger that there is.
    code = "import sys; from importlinter.cli import lint_imports as lint; sys.exit(lint())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_tests_mirror_the_package() -> None:
    strays = {
        str(test.relative_to(ROOT / "tests"))
        for layer, mirrored in MIRRORED.items()
        for test in sorted((ROOT / "tests" / layer).rglob("test_*.py"))
        if not is_about(test, PACKAGE / mirrored / test.parent.relative_to(ROOT / "tests" / layer))
    }
    assert strays == CROSS_CUTTING


def test_each_module_with_logic_has_a_test_module_of_its_own() -> None:
    untested = [
        str(path.relative_to(PACKAGE))
        for path in modules()
        if path.name != "__init__.py" and definitions(path).implemented and not has_own_tests(path)
    ]
    assert tuple(sorted(untested)) == COVERED_ELSEWHERE


def test_a_class_name_exists_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules():
        for name in definitions(path).classes:
            places[name].append(str(path.relative_to(PACKAGE)))
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}


def test_a_package_has_a_docstring_and_at_most_twelve_modules() -> None:
    for package in (*packages(), *packages(ROOT / "benchmarks")):
        assert ast.get_docstring(ast.parse((package / "__init__.py").read_text())), package
        found = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
        assert len(found) <= MAX_MODULES, f"{package.relative_to(ROOT)}: {found}"


def test_the_docstring_of_a_package_lists_its_modules() -> None:
    for package in packages():
        if package == PACKAGE or not str(package.relative_to(PACKAGE)).startswith("_"):
            continue  # public packages are described by their public names
        doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
        held = {path.stem for path in package.glob("[a-z]*") if path.name != "py.typed"}
        unnamed = {name for name in held if not re.search(rf"\b{name}\b", doc)}
        listed = set(re.findall(r"^ *([a-z_]+_[a-z_]+)  ?\S", doc, re.MULTILINE))
        where = package.relative_to(ROOT)
        assert not unnamed, f"{where}: its docstring leaves out {sorted(unnamed)}"
        assert listed <= held, f"{where}: its docstring names {sorted(listed - held)}"


def test_a_module_has_at_most_five_hundred_lines() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in modules()
    }
    assert {name for name, lines in lengths.items() if lines > MAX_LINES} == LONG_MODULES


def test_a_function_has_at_most_sixty_lines() -> None:
    lengths = {
        f"{path.relative_to(PACKAGE)}:{function}": lines
        for path in modules()
        for function, lines in definitions(path).functions.items()
    }
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}


def test_no_docstring_begins_with_a_question_word() -> None:
    found = {
        f"{module.relative_to(ROOT)}:{line}": text.splitlines()[0]
        for folder in PROJECT
        for module in sorted((ROOT / folder).rglob("*.py"))
        if QUESTION_LITERAL.search(module.read_text())  # most modules need no syntax tree
        for line, text in definitions(module).docstrings
        if QUESTION_WORDS.match(text.lstrip())
    }
    assert not found, "\n".join(f"{place}: {line}" for place, line in found.items())


IMPORTS = (
    "import aioinformer",
    "from aioinformer import KubeObject, Lister, SharedInformerFactory, field, labelled",
    "import aioinformer.lowlevel",
    "import aioinformer.metrics",
    "import aioinformer.tracing",
    "import aioinformer.testing",
    "import aioinformer.__main__",
)


def test_importing_loads_no_http_library() -> None:
    """One process runs all imports: none loads alone what all of them do not load together."""
    code = "import sys\nheavy = {'aiohttp', 'kubernetes_asyncio', 'anyio', 'yaml'}\n"
    for program in IMPORTS:
        code += f"{program}\nif found := heavy & set(sys.modules):\n"
        code += f"    sys.exit(f'{program} loads {{found}}')\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def loaded_modules(program: str) -> set[str]:
    """Return the modules that a new interpreter has after ``program``, beyond what it begins with.

    asyncio and msgspec, and all that they load, are what the library can't do without.
    """
    code = f"import sys, asyncio, msgspec; before = set(sys.modules); {program}"
    code += "; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_factory_loads_no_module_of_a_feature_that_a_program_may_not_use() -> None:
    """Each module takes a third of a millisecond, and a program waits for all of them."""
    loaded = loaded_modules("from aioinformer import SharedInformerFactory")
    names = {each.removeprefix("aioinformer.") for each in loaded}
    assert "_runtime.informer.factory" in names
    assert not [
        name
        for name in sorted(names)
        if name in OPTIONAL or name.startswith(tuple(f"{each}." for each in OPTIONAL))
    ]


def test_the_factory_loads_hardly_anything_beyond_asyncio_and_msgspec() -> None:
    loaded = loaded_modules("from aioinformer import SharedInformerFactory")
    assert not loaded.intersection(DEAR)


def test_every_exported_name_of_the_test_tools_exists() -> None:
    names = aioinformer.testing.__all__
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(aioinformer.testing, name) is not None


def test_the_wheel_holds_the_package_its_types_and_its_licence(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(built).namelist())
    assert {"aioinformer/__init__.py", "aioinformer/py.typed"} <= names
    assert {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    } <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]
