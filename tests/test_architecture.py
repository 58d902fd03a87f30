"""The structure of the package: imports, sizes of modules and functions, and the wheel."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

import aioinformer.testing
from docs.__main__ import MODULES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "aioinformer"

MAX_LINES = 700
"""Lines in a module."""

MAX_FUNCTION_LINES = 60
"""Lines in a function, its docstring aside."""

OPTIONAL = (
    "_client",
    "_core.cache.memory",
    "_core.cache.protocols",
    "_core.cache.query",
    "_core.codec.json_scanner",
    "_core.codec.list_decoder",
    "_core.selectors",
    "_core.writing",
    "_runtime.delivery.statistics",
    "_runtime.delivery.streams",
    "_runtime.delivery.thread_pool",
    "_runtime.reflector.list_reader",
    "_runtime.reporting.error_copy",
    "_runtime.reporting.health",
    "_runtime.reporting.problem",
    "_runtime.tasks.scan",
    "_runtime.writing",
    "cachefile",
    "controllers",
    "errors.delays",
    "eventrecorder",
    "leaderelection",
    "namespaces.scope_set",
    "namespaces.state",
    "operator",
    "shardgroup.group",
    "sharding.group_reflectors",
    "sharding.shard_reader",
    "sharding.state",
    "verification",
)
"""Modules and packages of features that a program with one informer may not use, or of types."""

SLOW_IMPORTS = (
    "attr",
    "bisect",
    "copy",
    "dataclasses",
    "email",
    "hashlib",
    "json",
    "random",
    "urllib",
)
"""Modules of the standard library and of others, beyond those of asyncio and msgspec, that take a
millisecond or more. An HTTP library loads most of them, so they come with the first connection."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    last, first = function.end_lineno, function.body[0]
    assert last is not None
    lines = last - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None or first.end_lineno is None:
        return lines
    return lines - (first.end_lineno - first.lineno + 1)


def test_every_import_contract_holds() -> None:
    # In a process of its own: it sets logging up anew, which mutes every logger that there is.
    code = "import sys; from importlinter.cli import lint_imports as lint; sys.exit(lint())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports in functions and for types count, too. A circle raises a ``CycleError``."""
    graph = grimp.build_graph("aioinformer")
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    TopologicalSorter(imports).prepare()


def test_each_module_has_a_name_of_its_own() -> None:
    """Except for those that each feature or command has."""
    names = Counter(path.stem for path in modules() if not path.stem.startswith("__"))
    shared = {"command", "feature", "health", "options"}
    assert {name for name, count in names.items() if count > 1} == shared


def test_private_modules_and_those_behind_a_page_have_no_list_of_their_names() -> None:
    """A page of the public API is a module with ``__all__``."""
    pages = {"aioinformer", "aioinformer.__main__", *MODULES, "aioinformer.errors"}
    listed = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in modules()
        if "\n__all__ = " in path.read_text()
    }
    assert listed <= pages


def test_a_module_has_at_most_seven_hundred_lines() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in modules()
    }
    assert not {name for name, lines in lengths.items() if lines > MAX_LINES}


def test_a_function_has_at_most_sixty_lines() -> None:
    lengths = {
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}": length(node)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}


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
    assert "_informers.factory" in names
    assert not [
        name
        for name in sorted(names)
        if name in OPTIONAL or name.startswith(tuple(f"{each}." for each in OPTIONAL))
    ]


def test_the_factory_loads_hardly_anything_beyond_asyncio_and_msgspec() -> None:
    loaded = loaded_modules("from aioinformer import SharedInformerFactory")
    assert not loaded.intersection(SLOW_IMPORTS)


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
