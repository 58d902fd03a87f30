"""The benchmark of the cost of models, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.features.models import FORMS, Weight, measure, table


@pytest.mark.parametrize("form", FORMS)
def test_every_form_takes_some_time(form: str) -> None:
    assert measure(form, 50).decode > 0


def test_the_table_has_a_row_for_each_form() -> None:
    shown = table({"bytes": Weight(2700.4, 8.25, 0.0), "Struct": Weight(1600, 11, 62.3)}, 50_000)

    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["bytes", "2,700", "8.2", "0.0"],
        ["Struct", "1,600", "11.0", "62.3"],
    ]
