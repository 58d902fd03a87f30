"""Build the reference of the public API: ``python -m docs FOLDER``.

pdoc imports the modules and reads their ``__all__``, so that names which the package loads at first
use are included. Warnings of pdoc are errors, such as an annotation that doesn't resolve. The build
also fails if a public name is missing from the page of its module.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pdoc
from pdoc import render

PAGES = (
    "api",
    "conditions",
    "controllers",
    "eventrecorder",
    "leaderelection",
    "lowlevel",
    "metrics",
    "operator",
    "selectors",
    "shardgroup",
    "sharding",
    "tracing",
    "verification",
)
ADAPTERS = (
    "asgi",
    "kubernetes_aio",
    "kubernetes_asyncio",
    "opentelemetry",
    "prometheus",
    "pydantic",
)
MODULES = (
    "aioinformer",  # its page and that of ``errors``, which its ``__all__`` names
    *(f"aioinformer.{page}" for page in PAGES),
    *(f"aioinformer.adapters.{adapter}" for adapter in ADAPTERS),
    "aioinformer.testing",
    "aioinformer.testing.plugin",
    "aioinformer.testing.simulation",
)

KNOWN_WARNINGS = (
    # pdoc resolves the annotations of a generated or inherited ``__init__``, and of exceptions that
    # ``errors`` shows as its own, in the wrong module. The page shows them as they are written.
    r"Error parsing type annotation .* Import of \w+ failed: name '\w+' is not defined",
    # The keys of a TypedDict have no entry of their own in its bases.
    r"Cannot determine where aioinformer\.api\.\w+Keywords\.",
)


def build_reference(folder: Path) -> None:
    """Write the pages to ``folder``.

    Raises:
        Warning: pdoc has warned.
        SystemExit: a public name has no entry; the message names all of them.
    """
    render.configure(docformat="google", show_source=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in KNOWN_WARNINGS:
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        pdoc.pdoc(*MODULES, output_directory=folder)
    if missing := find_missing_names(folder):
        sys.exit(f"public names without an entry: {', '.join(missing)}")


def find_missing_names(folder: Path) -> list[str]:
    """Return the public names that have no entry on the page of their module."""
    missing: list[str] = []
    for module in (*MODULES, "aioinformer.errors"):
        page = (folder / f"{module.replace('.', '/')}.html").read_text()
        names: list[str] = getattr(import_module(module), "__all__", [])
        entries = set(re.findall(r'id="(\w+)"', page))
        submodules = {name for name in names if f"{module}.{name}" in sys.modules}
        missing += [f"{module}.{name}" for name in names if name not in entries | submodules]
    return missing


if __name__ == "__main__":
    build_reference(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference"))
