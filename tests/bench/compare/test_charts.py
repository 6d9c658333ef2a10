"""The charts: well-formed, the same every time, legible, and told apart without colour."""

import math
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.compare.charts import BAR_LEFT, LABEL_MAX, NAME_MAX, WIDTH, Bar, Series, bars, lines
from bench.compare.look import DARK, DASHES, KINDS, LIGHT, MARKERS

SVG = "{http://www.w3.org/2000/svg}"
TWO = [Series("ours", [(10, 10), (100, 100)]), Series("a < b & c", [(10, 1), (100, 2)])]

# What protanopes, deuteranopes and tritanopes see of linear RGB: Machado, Oliveira and Fernandes, 2009.
SEEN = {
    "all colours": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def chart(rows: list[Series] | None = None) -> str:
    return lines("Title", "What it shows", "changes a second", "dollars a day", rows or TWO)


def texts(svg: str) -> list[str]:
    return [text for element in ElementTree.fromstring(svg).iter(SVG + "text") if (text := element.text)]


def test_a_chart_says_what_it_is_to_those_who_do_not_see_it() -> None:
    root = ElementTree.fromstring(chart())
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert [root.findtext(SVG + name) for name in ("title", "desc")] == ["Title", "What it shows"]


def test_title_axes_ticks_and_names_are_written() -> None:
    written = texts(chart())
    assert {"Title", "changes a second", "dollars a day", "ours", "a < b & c", "1", "10", "100"} <= set(written)


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert chart() == chart([Series(each.name, tuple(each.points)) for each in TWO])
    assert bars("t", "d", "x", [Bar("a", 1)]) == bars("t", "d", "x", [Bar("a", 1)])


def test_a_chart_is_for_dark_and_light_pages() -> None:
    svg = chart()
    light, dark = svg.split("@media (prefers-color-scheme: dark)")
    assert all(colour in light for colour in LIGHT)
    assert all(colour in dark for colour in DARK)


def test_no_two_kinds_need_their_colour_to_be_told_apart() -> None:
    for palette in (LIGHT, DARK, DASHES, MARKERS):
        assert len(set(palette)) == len(palette) == KINDS
    drawn = ElementTree.fromstring(chart([Series(str(n), [(1, 1), (10, 10)]) for n in range(KINDS)]))
    assert {path.get("stroke-dasharray") for path in drawn.iter(SVG + "path")} >= set(DASHES)
    assert {path.get("d") for path in drawn.iter(SVG + "path")} >= set(MARKERS)


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def light_of(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lab(colour: str, seen: str) -> tuple[float, float, float]:
    """CIELAB of a colour as somebody sees it."""
    rgb = linear(colour)
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in SEEN[seen])
    x, y, z = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883,
    )
    f, g, h = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * g - 16, 500 * (f - g), 200 * (g - h)


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_colours_stay_apart_for_everybody(palette: tuple[str, ...], seen: str) -> None:
    assert min(math.dist(lab(a, seen), lab(b, seen)) for a, b in combinations(palette, 2)) > 20


@pytest.mark.parametrize(("palette", "page"), [(LIGHT, "#ffffff"), (DARK, "#0f151c")], ids=["light", "dark"])
def test_the_colours_stand_out_from_the_page(palette: tuple[str, ...], page: str) -> None:
    for colour in palette:
        dim, bright = sorted((light_of(colour), light_of(page)))
        assert (bright + 0.05) / (dim + 0.05) > 3


def test_what_has_no_place_on_a_logarithmic_axis_is_left_out() -> None:
    assert chart([Series("a", [(0, 5), (10, 10), (100, 0), (100, 100)])]) == chart(
        [Series("a", [(10, 10), (100, 100)])]
    )
    assert "ours" in texts(chart([Series("ours", [(10, 0)]), Series("b", [(1, 1)])]))


@given(st.lists(st.tuples(st.floats(1e-9, 1e12), st.floats(1e-9, 1e12)), min_size=1, max_size=20))
def test_every_point_is_inside_the_chart(points: list[tuple[float, float]]) -> None:
    root = ElementTree.fromstring(chart([Series("a", points)]))
    height = float(root.get("viewBox", "").split()[3])
    for path in root.iter(SVG + "path"):
        if (moved := path.get("transform")) and "dot" in path.get("class", ""):
            x, y = map(float, moved.removeprefix("translate(").removesuffix(")").split())
            assert 0 < x < WIDTH
            assert 0 < y < height


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20))
def test_every_bar_is_as_long_as_its_number(values: list[float]) -> None:
    root = ElementTree.fromstring(bars("t", "d", "x", [Bar("a", value) for value in values]))
    widths = [float(rect.get("width", "")) for rect in root.iter(SVG + "rect") if rect.get("class", "").startswith("s")]
    assert len(widths) == len(values)
    most = max(values) or 1.0
    assert widths == pytest.approx([value / most * max(widths) for value in values], abs=0.11)
    assert BAR_LEFT + max(widths) < WIDTH - 60


def test_a_bars_number_stands_beside_it() -> None:
    written = texts(bars("t", "d", "dollars", [Bar("one", 1.875), Bar("two", 0.625), Bar("none", 0)]))
    assert {"one", "two", "none", "1.88", "0.63", "0.00", "dollars"} <= set(written)
    assert "12,345" in texts(bars("t", "d", "x", [Bar("a", 12_345)]))


def test_what_would_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="lines"):
        chart([Series("a" * (NAME_MAX + 1), [(1, 1)])])
    with pytest.raises(ValueError, match="lines"):
        chart([Series("a", [(1, 1)])] * (KINDS + 1))
    with pytest.raises(ValueError, match="lines"):
        chart([Series("a", [(0, 1)])])
    for row in (
        Bar("a" * (LABEL_MAX + 1), 1),
        Bar("a", -1),
        Bar("a", math.nan),
        Bar("a", math.inf),
        Bar("a", 1, KINDS),
    ):
        with pytest.raises(ValueError, match="bars"):
            bars("t", "d", "x", [row])
    with pytest.raises(ValueError, match="bars"):
        bars("t", "d", "x", [])
