"""Messages of the command line for common mistakes: one line, never a traceback.

The texts are the library's own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import CommandLine
from tests.cli.conftest import Enter
from tests.client.conftest import Certificates, certificates
from tests.client.failure_setups import CANARY, FailureContext, FailureSetup
from tests.client.user_errors import USER_ERRORS, UserError

__all__ = ["certificates"]  # a fixture, for pytest to find


@pytest.fixture
def stage(tmp_path: Path, certificates: Certificates) -> FailureSetup:
    return FailureSetup(tmp_path, certificates)


def argv(mistake: UserError, situation: FailureContext) -> list[str]:
    words = ["watch", mistake.resource, "-n", "web", "--kubeconfig", situation.file]
    if mistake.context is not None:
        words += ["--context", mistake.context]
    if mistake.fields:
        words += ["--field-selector", mistake.fields]
    return words


@pytest.mark.parametrize("mistake", [each for each in USER_ERRORS if each.code], ids=str)
def test_a_beginners_mistake_is_one_line(
    mistake: UserError, stage: FailureSetup, cli: CommandLine, enter: Enter
) -> None:
    situation = enter(mistake.setup(stage))
    code, out, err = cli.run(*argv(mistake, situation))

    assert (code, out) == (mistake.code, "")
    assert err.endswith(f"{mistake.expected_text(situation)}\n")
    assert err.startswith("aioinformer: ")
    assert err.count("\n") == 1
    assert CANARY not in err


@pytest.mark.parametrize("mistake", [each for each in USER_ERRORS if not each.code], ids=str)
def test_an_error_that_is_retried_is_one_line_for_each_attempt(
    mistake: UserError, stage: FailureSetup, cli: CommandLine, enter: Enter
) -> None:
    """Somebody may be granting the role at this moment."""
    situation = enter(mistake.setup(stage))
    with cli.started(*argv(mistake, situation)) as run:
        line = run.read_stderr_line()
        assert run.interrupt() == (130, "", "")

    said = mistake.expected_text(situation)
    assert line == f"aioinformer: pods in web: {mistake.error.__name__}: {said}\n"
