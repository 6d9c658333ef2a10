"""`python -m bench.compare.model`: prints what the model of partitions forecasts, and writes its charts to docs/charts.

Rules: nothing here is measured or decided; the numbers are those of partitions.py, lane.py and bill.py. The charts in
docs/charts are what this writes, byte for byte; a test says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from bench.compare import lane
from bench.compare.charts import Bar, Series, bars, lines
from bench.compare.partitions import (
    ADD,
    DAY_S,
    DESIGNS,
    OURS,
    SETTINGS,
    TOKEN,
    WRITE_UNITS,
    Design,
    Forecast,
    assumptions,
    predict,
    reads_per_s,
    shards_needed,
)
from infra.ledgerctl.bill import PRICES

RATES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
SHARDS = (1, 4, 16, 64)
REGIONS = (1, 2, 3)
LANE_RATES = (0.1, 1, 10, 50, 100, 250, 400, 500)
CHARTS = Path(__file__).parents[2] / "docs" / "charts"


def report() -> Iterator[str]:
    """The lines that are printed."""
    yield "Assumptions:"
    yield assumptions()
    for design in DESIGNS:
        yield ""
        yield from table(design)
    yield ""
    yield from shards_table()
    yield ""
    yield from lane_table()


def table(design: Design) -> Iterator[str]:
    """One design: throttled, lag after an hour and dollars a day, by rate, shards and Regions."""
    yield f"{design.name}: throttled, lag after an hour, dollars a day in 1, 2 and 3 Regions"
    yield f"{'changes/s':>9} {'shards':>6}" + "".join(f"{_regions(regions):>30}" for regions in REGIONS)
    for rate in RATES:
        for shards in SHARDS:
            cells = (_cell(predict(design, rate, shards, regions)) for regions in REGIONS)
            yield f"{rate:>9,} {shards:>6}" + "".join(cells)


def _cell(forecast: Forecast) -> str:
    return f"{forecast.throttled:>10.1%} {forecast.lag_s / 60:>5.1f} min {forecast.dollars_a_day:>9,.2f}"


def shards_table() -> Iterator[str]:
    """How many shards throttle nothing, and how long a new table needs until it carries them."""
    yield "shards that throttle nothing, in 1, 2 and 3 Regions; minutes until a new table takes it (* above the quota)"
    yield f"{'changes/s':>9}" + "".join(f"{design.name:>34}" for design in DESIGNS)
    for rate in RATES:
        cells = []
        for design in DESIGNS:
            needed = [shards_needed(design, rate, regions) for regions in REGIONS]
            there = predict(design, rate, needed[0])
            quota = "*" if there.over_quota else " "
            cells.append(f"{'/'.join(f'{n:,}' for n in needed):>24} {there.warm_up_minutes:>4} min{quota}")
        yield f"{rate:>9,}" + "".join(cells)


def lane_table() -> Iterator[str]:
    """One lane of ours by its rate."""
    yield "one lane of ours                     deltas in the tail      units  reads/s    clean  partition"
    yield "changes/s  write units  read units  on average  at most  of a read  at most    takes       full"
    yield "              a change    a change"
    for rate in LANE_RATES:
        load = lane.load(rate, SETTINGS, WRITE_UNITS)
        yield (
            f"{rate:>9,} {load.write_units / rate:>12.3f} {load.read_units / rate:>11.3f} {load.tail:>11,.0f} "
            f"{load.tail_most:>8,.0f} {load.a_read:>10.1f} {reads_per_s(load):>8,.0f} "
            f"{load.clean_s:>6.0f} s {load.full:>10.1%}"
        )


def charts() -> dict[str, str]:
    """The charts by file name."""
    return {"stored.svg": stored_chart(), "reads.svg": reads_chart(), "dollars.svg": dollars_chart()}


def stored_chart() -> str:
    shown = [(OURS, shards) for shards in SHARDS] + [(ADD, 1), (ADD, 16), (TOKEN, 1)]
    series = [
        Series(
            _name(design, shards), [(rate, predict(design, rate, shards, 3).stored) for rate in _rates(design, shards)]
        )
        for design, shards in shown
    ]
    return lines(
        "What one counter stores, three Regions together",
        "The model's forecast: a line follows what is asked until its partitions are full, and is level from there. "
        + "; ".join(f"{each.name}: {max(y for _, y in each.points):,.0f} a second" for each in series),
        "changes a second that are asked for",
        "changes a second that are stored",
        series,
    )


def reads_chart() -> str:
    ours = [
        Series(
            _name(OURS, shards),
            [
                (rate, shards * lane.load(rate / shards, SETTINGS, WRITE_UNITS).a_read)
                for rate in _rates(OURS, shards, regions=1)
                if not predict(OURS, rate, shards).throttled
            ],
        )
        for shards in SHARDS
    ]
    items = [
        Series(_name(ADD, shards), [(rate, shards) for rate in RATES if rate <= 1_000 * shards]) for shards in (1, 16)
    ]
    return lines(
        "What a strongly consistent read costs, one Region",
        "The model's forecast. A read of ours sums a tail of about 40 seconds, so it costs more at a higher rate: "
        + "; ".join(f"{each.name}: {each.points[0][1]:,.0f} to {each.points[-1][1]:,.0f} read units" for each in ours)
        + ". Single items cost one unit each. Lines end where the partitions are full.",
        "changes a second",
        "read units of a read",
        [*ours, *items],
    )


def dollars_chart() -> str:
    rate = 100
    rows = [
        Bar(
            f"{design.name}, {_regions(regions)}",
            predict(design, rate, regions=regions).dollars_a_day / (rate * DAY_S / 1e6),
            kind,
        )
        for kind, design in enumerate(DESIGNS)
        for regions in REGIONS
    ]
    return bars(
        "Dollars for a million changes to one counter",
        f"The model's forecast at {rate} changes a second, with compaction, on demand, at prices of {PRICES.region} "
        f"since {PRICES.since}: " + "; ".join(f"{row.label} {row.value:.2f}" for row in rows),
        f"US dollars a million changes, {PRICES.region}, on demand, prices since {PRICES.since}",
        rows,
    )


def _rates(design: Design, shards: int, regions: int = 3) -> list[float]:
    """The rates of the table, and where this design's partitions are full."""
    return sorted({*map(float, RATES), design.lanes(shards, regions) * WRITE_UNITS / design.hot_units})


def _name(design: Design, shards: int) -> str:
    if design.lanes_by_region:
        return f"{design.name}, {shards} shard{'s'[: shards > 1]}"
    return design.name if shards == 1 else f"{design.name}, {shards} items"


def _regions(regions: int) -> str:
    return f"{regions} Region{'s'[: regions > 1]}"


def main() -> None:
    """Print what the model of partitions forecasts, and write its charts to docs/charts."""
    for line in report():
        print(line)
    CHARTS.mkdir(exist_ok=True)
    for name, svg in charts().items():
        (CHARTS / name).write_text(svg)
        print(f"wrote docs/charts/{name}")


if __name__ == "__main__":
    typer.run(main)
