"""Small SVG charts as text: lines over two logarithmic axes, and horizontal bars.

Rules: the same numbers give the same bytes; nothing but the standard library; dark or light follows the reader
(`prefers-color-scheme`); nothing is said by colour alone: each line has its own dashes and marker, each bar its label
and number; a name that would be cut off is refused; the description says in words what the picture shows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from bench.compare.look import DASHES, KINDS, MARKERS, STYLE

NAME_MAX, LABEL_MAX = 29, 36  # letters that fit a legend, a bar's label
WIDTH, TOP = 820, 54
LEFT, RIGHT, HEIGHT = 92, 560, 300  # of the plot of lines; the legend stands to its right
BAR_LEFT, BAR_RIGHT, BAR_STEP = 260, 740, 27


@dataclass(frozen=True, slots=True)
class Series:
    """A named line through (x, y); what is not above 0 has no place on a logarithmic axis and is left out."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled number, 0 or more; bars of one `kind` have one colour."""

    label: str
    value: float
    kind: int = 0


def lines(title: str, description: str, x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """Lines with markers over two logarithmic axes; the legend is in the order of `series`. Labels name the units."""
    drawn = [[(math.log10(x), math.log10(y)) for x, y in each.points if x > 0 and y > 0] for each in series]
    if not any(drawn) or len(series) > KINDS or any(len(each.name) > NAME_MAX for each in series):
        raise ValueError(f"not {KINDS} lines at most with names of {NAME_MAX} letters and points above 0: {series}")
    x_powers, y_powers = (_powers(point[axis] for points in drawn for point in points) for axis in (0, 1))
    bottom = TOP + HEIGHT

    def across(power: float) -> float:
        return LEFT + (power - x_powers[0]) / (x_powers[-1] - x_powers[0]) * (RIGHT - LEFT)

    def down(power: float) -> float:
        return bottom - (power - y_powers[0]) / (y_powers[-1] - y_powers[0]) * HEIGHT

    parts = []
    for power in x_powers:
        parts += [_rule(across(power), TOP, across(power), bottom)]
        parts += [_text(across(power), bottom + 20, f"{10.0**power:,.{max(0, -power)}f}", "soft mid")]
    for power in y_powers:
        parts += [_rule(LEFT, down(power), RIGHT, down(power))]
        parts += [_text(LEFT - 8, down(power) + 4, f"{10.0**power:,.{max(0, -power)}f}", "soft end")]
    parts += [_rule(LEFT, bottom, RIGHT, bottom, "axis"), _rule(LEFT, TOP, LEFT, bottom, "axis")]
    parts += [_text((LEFT + RIGHT) / 2, bottom + 44, x_label, "mid")]
    parts += [f'<g transform="translate(18 {TOP + HEIGHT / 2:.1f}) rotate(-90)">{_text(0, 0, y_label, "mid")}</g>']
    for kind, points in enumerate(drawn):
        places, height = [(across(x), down(y)) for x, y in points], TOP + 12 + 26 * kind
        parts += [_line(kind, places), *(_dot(kind, *place) for place in places)]
        parts += [_line(kind, [(RIGHT + 20, height), (RIGHT + 58, height)]), _dot(kind, RIGHT + 39, height)]
        parts += [_text(RIGHT + 68, height + 4, series[kind].name)]
    return _svg(title, description, bottom + 62, parts)


def bars(title: str, description: str, x_label: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars from 0, in the order of `rows`; the label names the unit."""
    fit = all(0 <= r.value < math.inf and 0 <= r.kind < KINDS and len(r.label) <= LABEL_MAX for r in rows)
    if not rows or not fit:
        raise ValueError(f"not bars from 0 with labels of {LABEL_MAX} letters: {rows}")
    most, bottom = max(row.value for row in rows) or 1.0, TOP + BAR_STEP * len(rows) + 6
    tenth = 10.0 ** (math.floor(math.log10(most)) - 1)
    step = next(times * tenth for times in (2, 5, 10, 20) if most / (times * tenth) <= 6)
    ticks, decimals = math.ceil(most / step), max(0, 2 - math.floor(math.log10(most)))
    scale = (BAR_RIGHT - BAR_LEFT) / (ticks * step)
    parts = []
    for tick in range(ticks + 1):
        x = BAR_LEFT + tick * step * scale
        parts += [_rule(x, TOP, x, bottom), _text(x, bottom + 18, f"{round(tick * step, 9):,g}", "soft mid")]
    for y, row in enumerate(rows):
        top, width = TOP + 8 + BAR_STEP * y, row.value * scale
        parts += [f'<rect class="s{row.kind}" x="{BAR_LEFT}" y="{top}" width="{width:.1f}" height="17"/>']
        parts += [_text(BAR_LEFT - 10, top + 13, row.label, "end")]
        parts += [_text(BAR_LEFT + width + 7, top + 13, f"{row.value + 1e-12:,.{decimals}f}", "over")]
    parts += [_rule(BAR_LEFT, TOP, BAR_LEFT, bottom, "axis")]
    parts += [_text((BAR_LEFT + BAR_RIGHT) / 2, bottom + 42, x_label, "mid")]
    return _svg(title, description, bottom + 60, parts)


def _powers(logs: Iterable[float]) -> range:
    ordered = sorted(logs)
    low, high = math.floor(ordered[0]), math.ceil(ordered[-1])
    return range(low, max(high, low + 1) + 1)


def _rule(x: float, y: float, to_x: float, to_y: float, kind: str = "grid") -> str:
    return f'<path class="{kind}" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "ink") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _line(kind: int, places: Sequence[tuple[float, float]]) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return f'<path class="line l{kind}" stroke-dasharray="{DASHES[kind]}" d="M{path}"/>' if path else ""


def _dot(kind: int, x: float, y: float) -> str:
    return f'<path class="dot s{kind}" transform="translate({x:.1f} {y:.1f})" d="{MARKERS[kind]}"/>'


def _svg(title: str, description: str, height: int, parts: Sequence[str]) -> str:
    body = "\n  ".join([_text(24, 30, title, "title"), *filter(None, parts)])
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"
     aria-labelledby="title desc" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
     font-size="13">
  <title id="title">{escape(title)}</title>
  <desc id="desc">{escape(description)}</desc>
  <style>
    {STYLE}
  </style>
  <rect class="page" width="{WIDTH}" height="{height}" rx="10"/>
  {body}
</svg>
"""
