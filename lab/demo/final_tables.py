"""The tables at the end of the demo: a column for the truth, then one for each design."""

from collections.abc import Iterable

from rich.table import Table

from lab.demo.outcome import REGIONS, Outcome
from lab.events import is_witness

BUSIEST = 5


def summary(outcome: Outcome) -> Table:
    """What each design says of the file's counters and of the witnesses, and what it took. Fits 80 columns."""
    counters = [counter for counter in outcome.truth if not is_witness(counter)]
    witnesses = [counter for counter in outcome.truth if is_witness(counter)]
    table = _table(outcome, f"{len(counters):,} counters and {len(witnesses)} witnesses")

    def row(label: str, cells: Iterable[str], truth: str = "", end: bool = False) -> None:
        table.add_row(label, truth, *cells, end_section=end)

    def mistakes(label: str, found: Iterable[int], end: bool = False) -> None:
        row(label, (f"[{'bold red' if count else 'green'}]{count:,}[/]" for count in found), end=end)

    designs, changes = outcome.designs, outcome.changes
    reads = [outcome.reads[design.name] for design in designs]
    writes = [design.writes.total() for design in designs]
    true_sum = sum(outcome.truth[counter] for counter in counters)
    for region in REGIONS:
        values = [outcome.values[design.name][region] for design in designs]
        row(f"sum in {region}", (f"{sum(v.get(c, 0) for c in counters):,}" for v in values), f"{true_sum:,}")
        mistakes("  counters wrong", (outcome.wrong(d, region, counters) for d in designs))
        mistakes("  witnesses wrong", (outcome.wrong(d, region, witnesses) for d in designs), end=True)
    row("counters read", (f"{each.made:,}" for each in reads))
    mistakes("  not a true sum", (each.untrue for each in reads))
    mistakes("  lacking a change", (each.short for each in reads), end=True)
    row("requests / change", (f"{each.requests / changes:.2f}" for each in writes))
    row("write units / change *", (f"{each.writes_in(len(REGIONS)) / changes:.2f}" for each in writes))
    row("read units / counter", (f"{each.read_units / max(1, each.made):.2f}" for each in reads))
    table.caption, table.caption_justify = "* in both Regions together, with compaction and all faults", "left"
    return table


def busiest(outcome: Outcome) -> Table:
    """The counters with the most changes, by name, as the first Region reads them."""
    table = _table(outcome, f"the busiest counters, read in {REGIONS[0]}")
    counters = sorted(outcome.sizes, key=lambda counter: -outcome.sizes[counter])
    for counter in [counter for counter in counters if not is_witness(counter)][:BUSIEST]:
        truth = outcome.truth[counter]
        values = (outcome.values[design.name][REGIONS[0]].get(counter, 0) for design in outcome.designs)
        cells = (f"{value:,}" if value == truth else f"[bold red]{value:,}[/]" for value in values)
        table.add_row(counter[:22].replace("[", "\\["), f"{truth:,}", *cells)
    return table


def _table(outcome: Outcome, title: str) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("", min_width=22)
    table.add_column("truth", justify="right")
    for design in outcome.designs:
        table.add_column(design.name, justify="right")
    return table
