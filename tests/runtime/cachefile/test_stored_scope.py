"""The problems that end the use of a cache file, in words for the person who sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer._runtime.cachefile.stored_scope import explain_open

PATH = Path("/no/such/folder/pods.db")


def test_a_missing_folder_is_to_be_created() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        PATH.open("wb")

    assert explain_open(PATH, caught.value) == (
        "/no/such/folder/pods.db can't be opened: the folder /no/such/folder does not exist; "
        "create the folder first"
    )


def test_another_error_is_shown_with_the_reason_of_the_system() -> None:
    denied = PermissionError(13, "Permission denied", str(PATH))

    assert explain_open(PATH, denied) == f"{PATH} can't be opened: Permission denied"


def test_an_error_without_a_number_is_shown_with_its_text() -> None:
    assert explain_open(PATH, OSError("not a disk")) == f"{PATH} can't be opened: not a disk"
