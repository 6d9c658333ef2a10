"""A series as an SVG: a bar for each step, and a line of the values at their ends."""

from exact_counter import Series

WIDTH, HEIGHT, LABELS = 640, 200, 22


def svg(series: Series) -> str:
    changes = [step.change for step in series.steps]
    values = [step.value for step in series.steps]
    low, high = min(0, *changes, *values), max(1, *changes, *values)
    wide = WIDTH / len(changes)

    def y(amount: int) -> float:
        return round((high - amount) / (high - low) * HEIGHT, 1)

    bars = [
        f'<rect x="{i * wide + 1:.1f}" width="{wide - 2:.1f}" y="{y(max(0, change))}" '
        f'height="{abs(y(0) - y(change)):.1f}"><title>{step.start:%d %B}: '
        f"{change:+,}, {step.value:,} then</title></rect>"
        for i, (change, step) in enumerate(zip(changes, series.steps, strict=True))
    ]
    line = " ".join(f"{i * wide + wide / 2:.1f},{y(v)}" for i, v in enumerate(values))
    first, last = series.steps[0].start, series.steps[-1].start
    label = f'y="{HEIGHT + LABELS - 6}" fill="#78909c" font-size="13"'
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"',
            f'     viewBox="0 0 {WIDTH} {HEIGHT + LABELS}">',
            f'<g fill="#78909c">{"".join(bars)}</g>',
            f'<polyline points="{line}" fill="none" stroke="#ef6c00"/>',
            f"<text {label}>{first:%d %B %Y}</text>",
            f'<text x="{WIDTH}" text-anchor="end" {label}>{last:%d %B}</text>',
            "</svg>\n",
        ]
    )
