"""The table at the end of the demo: a column for the truth, then one for each design."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.table import Table

from demo.play import REGIONS, Outcome


def summary(outcome: Outcome) -> Table:
    """What each design says, and what it took. Fits 80 columns."""
    table = Table(title=f"{len(outcome.truth):,} counters, {outcome.changes:,} changes", title_justify="left")
    table.add_column("")
    table.add_column("truth", justify="right")
    for design in outcome.designs:
        table.add_column(design.name, justify="right")

    def row(label: str, cells: Iterable[str], truth: str = "", end: bool = False) -> None:
        table.add_row(label, truth, *cells, end_section=end)

    designs, changes = outcome.designs, outcome.changes
    reads = [outcome.reads[design.name] for design in designs]
    writes = [design.writes.total() for design in designs]
    for region in REGIONS:
        sums = [_shop_sum(outcome, outcome.values[design.name][region]) for design in designs]
        row(f"sum in {region}", (f"{each:,}" for each in sums), f"{_shop_sum(outcome, outcome.truth):,}")
        row("  counters wrong", (f"{outcome.wrong(design, region):,}" for design in designs), "0", end=True)
    row("reads made", (f"{each.made:,}" for each in reads))
    row("  not a true sum", (f"{each.untrue:,}" for each in reads), "0", end=True)
    row("requests / change", (f"{each.requests / changes:.2f}" for each in writes))
    row("write units / change *", (f"{each.writes_in(len(REGIONS)) / changes:.2f}" for each in writes))
    row("read units / read", (f"{each.read_units / max(1, each.made):.2f}" for each in reads))
    table.caption, table.caption_justify = "* both Regions, compaction included, faults too", "left"
    return table


def _shop_sum(outcome: Outcome, values: Mapping[str, int]) -> int:
    """The sum over all counters but the witnesses, whose powers of four would drown the others."""
    return sum(values.get(counter, 0) for counter in outcome.truth if not counter.startswith("witness:"))
