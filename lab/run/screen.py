"""What the demo prints: the sale, the summary and the verdict.

Rule 1: No line is wider than 80 columns, and nothing is said by colour alone.
Rule 2: The verdict comes last. It fails also where a run or a sale shows too little.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lab.events import Event, is_witness
from lab.run.round import Outcome
from lab.run.sale import SEATS, Sold

BUSIEST = 5
NAME_MAX = 18


def print_sale(console: Console, results: Sequence[Sold]) -> bool:
    """Print a flash sale in each design, ours first; whether it is as it must be."""
    table = _table("", "sold", "oversold", "left empty", "refused", "wrongly refused *")
    for sold in results:
        wrong = (_marked(f"{n:,}", n == 0) for n in (sold.oversold, sold.empty, sold.wrongly_refused))
        oversold, empty, wrongly = wrong
        table.add_row(sold.name, f"{sold.sold:,}", oversold, empty, f"{sold.refused:,}", wrongly)
    table.caption, table.caption_justify = "* while a seat was free", "left"
    console.print(table)
    ours, *others = results
    if not ours.is_right:
        console.print("[bold red]Our sale is wrong.[/] Please report it, with the seed.")
    elif any(other.is_right for other in others):
        console.print("[bold red]This sale shows too little:[/] another design kept to the seats, too.")
    else:
        console.print(f"[bold green]Ours sold {SEATS:,}, refused the rest, and nobody while a seat was free.[/]")
        return True
    return False


def closing(
    console: Console, outcome: Outcome, truth: Mapping[str, int], events: Sequence[Event], lacks: Sequence[str]
) -> bool:
    """Print the summary, and at the end what was proved, or what was not and why; whether it was."""
    done, faults = outcome.events, outcome.faults.copy()
    requests = faults.pop("requests")
    console.print(
        f"{requests:,} requests, of which met a fault {faults.total():,}; partitions {done['partitions']}, "
        f"freezes {done['pauses']}\n"
        f"changes: {done['packed']:,} put in packs, {done['folded']:,} folded, {done['settled']:,} settled, "
        f"{done['cleaned']:,} cleaned\n"
        f"{outcome.operations['read ok']:,} reads on the way"
    )
    if outcome.values:
        console.print(summary(outcome, truth, events))
    wrong = [*outcome.violations, *wrong_values(outcome, truth)]
    if wrong:
        console.print("[bold red]A number of ours is wrong.[/] Please report it, with the events and the seed:")
    elif lacks:
        console.print("[bold red]This run shows too little.[/] No number of ours is wrong, but too few are:")
    else:
        console.print("[bold green]Every number of ours is right, in both Regions, and every read was a true sum.[/]")
    for sentence in [*wrong, *lacks]:
        console.print(f"- {escape(sentence)}")
    return not wrong and not lacks


def wrong_values(outcome: Outcome, truth: Mapping[str, int]) -> list[str]:
    """The counters that are not their true value at the end, in sentences."""
    return [
        f"at the end {region} reads {values.get(counter, 0):,} of {counter}, which is {true:,}"
        for region, values in outcome.values.items()
        for counter, true in truth.items()
        if values.get(counter, 0) != true
    ]


def summary(outcome: Outcome, truth: Mapping[str, int], events: Sequence[Event]) -> Table:
    """The busiest counters, and the sum of all: what is true, and what each Region reads."""
    table = _table("", "truth", *outcome.values)
    sizes = Counter(event.counter for event in events if not is_witness(event.counter))
    busiest = [(counter, [counter]) for counter, _ in sizes.most_common(BUSIEST)]
    for name, counters in (*busiest, (f"all {len(sizes):,}", list(sizes))):
        true = sum(truth[counter] for counter in counters)
        sums = [sum(values.get(counter, 0) for counter in counters) for values in outcome.values.values()]
        table.add_row(escape(name[:NAME_MAX]), f"{true:,}", *(_marked(f"{each:,}", each == true) for each in sums))
    return table


def _marked(text: str, is_right: bool) -> str:
    return text if is_right else f"[bold red]{text}[/]"


def _table(first: str, *names: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, min_width=NAME_MAX)
    for name in names:
        table.add_column(name, justify="right")
    return table
