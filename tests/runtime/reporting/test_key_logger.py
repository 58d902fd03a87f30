"""The logger of one run of a reconciler."""

from __future__ import annotations

import logging

import pytest

from aioinformer import ObjectKey
from aioinformer._runtime.reporting.key_logger import KeyLogger

KEY = ObjectKey("web", "shop")


def test_a_line_names_the_controller_and_the_key(caplog: pytest.LogCaptureFixture) -> None:
    KeyLogger("sites", KEY).warning("%d of %d pods", 1, 3)

    (record,) = caplog.records
    assert record.getMessage() == "sites: web/shop: 1 of 3 pods"
    assert record.name == "aioinformer.reconcile"


def test_a_record_has_the_controller_and_the_key_beside_the_programs_own_attributes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"attempt": 3}
    KeyLogger("sites", KEY).warning("again", extra=given)

    found = vars(caplog.records[0])
    assert (found["controller"], found["key"], found["attempt"]) == ("sites", "web/shop", 3)
    assert given == {"attempt": 3}  # the program's mapping is not changed


def test_a_percent_sign_in_a_name_is_no_placeholder_of_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    KeyLogger("100%s", KEY).warning("%s is ready", "shop")

    assert caplog.messages == ["100_s: web/shop: shop is ready"]


def test_the_level_of_the_module_logger_decides_about_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, logger="aioinformer.reconcile")
    KeyLogger("sites", KEY).warning("not shown")

    assert caplog.messages == []
