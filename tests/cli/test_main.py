"""The command line before any command runs."""

from __future__ import annotations

import re

import pytest

from aioinformer.__main__ import main
from tests.cli.processes import imported_modules


def test_no_command_is_a_mistake_that_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: aioinformer ")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--version"])

    assert ending.value.code == 0
    assert re.match(r"aioinformer (\d+\.\d+|\(run from its source)", capsys.readouterr().out)


def test_help_needs_no_http_library() -> None:
    loaded = imported_modules("aioinformer.__main__")

    assert "aioinformer.__main__" in loaded
    assert not {"aiohttp", "kubernetes_asyncio"} & loaded
