"""Bar charts and line charts as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.report.svg import Bar, LineChart, bar_chart, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - ours


def test_the_length_of_a_bar_is_its_share_of_the_longest() -> None:
    chart = parsed(bar_chart("t", [Bar("a", 10, "10", ours=True), Bar("b<c", 40, "40")]))
    widths = [float(each.get("width", 0)) for each in chart.iter(f"{SVG}rect")]
    assert widths[0] == pytest.approx(widths[1] / 4)
    assert {"a", "10", "b<c", "40"} <= {each.text for each in chart.iter(f"{SVG}text")}


@pytest.mark.parametrize("log", [False, True])
def test_each_curve_has_its_points_in_the_picture_and_its_name_beside_it(log: bool) -> None:
    curves = {"one": [(1.0, 2.0), (10.0, 4.0), (100.0, 8.0)], "two": [(1.0, 80.0), (100.0, 90.0)]}
    chart = parsed(line_chart(LineChart("t", "objects", curves, log_x=log, log_y=log)))
    _, _, width, height = (float(each) for each in chart.get("viewBox", "").split())
    lines = [each.get("points", "").split() for each in chart.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines] == [3, 2]
    for point in (point for line in lines for point in line):
        x, y = map(float, point.split(","))
        assert 0 <= x <= width
        assert 0 <= y <= height
    assert {"one", "two", "objects"} <= {each.text for each in chart.iter(f"{SVG}text")}


def test_a_larger_value_is_drawn_higher_and_further_right() -> None:
    chart = parsed(line_chart(LineChart("t", "x", {"a": [(1.0, 1.0), (2.0, 3.0)]})))
    (line,) = [each.get("points", "").split() for each in chart.iter(f"{SVG}polyline")]
    (x1, y1), (x2, y2) = ([float(each) for each in point.split(",")] for point in line)
    assert x2 > x1
    assert y2 < y1
