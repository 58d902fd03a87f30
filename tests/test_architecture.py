"""Imports point downward, importing is cheap, and what is exported is all there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import aioinformer.testing

ROOT = Path(__file__).parent.parent


def test_every_import_contract_holds() -> None:
    # In a process of its own: it sets logging up anew, which mutes every logger that there is.
    code = "import sys; from importlinter.cli import lint_imports as lint; sys.exit(lint())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "program",
    [
        "import aioinformer",
        "from aioinformer import KubeObject, Lister, SharedInformerFactory, field, labelled",
        "import aioinformer.lowlevel",
        "import aioinformer.metrics",
        "import aioinformer.tracing",
        "import aioinformer.testing",
        "import aioinformer.__main__",
    ],
)
def test_importing_loads_no_http_library(program: str) -> None:
    code = (
        f"{program}\nimport sys\n"
        "heavy = {'aiohttp', 'kubernetes_asyncio', 'anyio', 'yaml'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_exported_name_of_the_test_tools_is_there() -> None:
    names = aioinformer.testing.__all__
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(aioinformer.testing, name) is not None


def test_the_wheel_holds_the_package_its_types_and_its_licence(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(built).namelist())
    assert {"aioinformer/__init__.py", "aioinformer/py.typed"} <= names
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "aioinformer").rglob("*.py")} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]
