"""What the demo prints: the sale, the summary and the verdicts.

Rule 1: No line is wider than 80 columns, and nothing is said by colour alone.
Rule 2: The verdicts come last. One fails also where a run or a sale shows too little.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from lab.events import Event, is_witness
from lab.run.round import Outcome
from lab.run.sale import SEATS, Sold

BUSIEST = 5
NAME_MAX = 18
WHYS = 5  # sentences of what is wrong that are printed


def print_sale(console: Console, results: Sequence[Sold]) -> None:
    """Print what each design made of a flash sale."""
    for sold in results:
        empty = f", {sold.empty:,} left empty" if sold.empty else ""
        over = f", {sold.oversold:,} more than there are" if sold.oversold else ""
        wrongly = (
            f", {sold.wrongly_refused:,} buyers wrongly refused" if sold.wrongly_refused else ""
        )
        _print_verdict(
            console,
            sold.is_right,
            f"{sold.name:<{NAME_MAX}}{sold.sold:,} seats sold{empty}{over}{wrongly}",
        )


def sale_verdict(results: Sequence[Sold]) -> tuple[bool, str]:
    """Whether a flash sale is as it must be, ours first, and what to say of it."""
    ours, *others = results
    if not ours.is_right:
        return False, "The sale: this library is wrong. Please report it, with the seed."
    if any(other.is_right for other in others):
        return False, "The sale shows too little: another design sold every seat once, too."
    return (
        True,
        f"The sale: {SEATS:,} of {SEATS:,} seats sold, and nobody refused while one was free.",
    )


def closing(
    console: Console,
    sale: Sequence[Sold],
    outcome: Outcome,
    truth: Mapping[str, int],
    events: Sequence[Event],
    lacks: Sequence[str],
) -> bool:
    """Print the summary, and at the end what was proved, or what was not and why; whether it
    was.
    """
    done, faults = outcome.events, outcome.faults.copy()
    requests = faults.pop("requests")
    console.print(
        f"{requests:,} requests, {faults.total():,} faults among them. Link cuts: "
        f"{done['partitions']}, frozen processes: {done['pauses']}.\n"
        f"The compactors merged {done['folded']:,} changes into totals, then "
        f"{done['settled']:,} that came late,\n"
        f"and deleted {done['cleaned']:,} changes that a total holds.\n"
        f"{outcome.operations['read ok']:,} reads were checked on the way."
    )
    if outcome.values:
        console.print(summary(outcome, truth, events))
    wrong = [*outcome.violations, *wrong_values(outcome, truth)]
    if wrong:
        verdict = "A number of this library is wrong. Please report it, with events and seed:"
    elif lacks:
        verdict = "The events show too little. No number is wrong, but too little happened:"
    else:
        verdict = "The events: every number is right in both Regions, and no read was wrong."
    is_sold, sold = sale_verdict(sale)
    _print_verdict(console, is_sold, sold)
    _print_verdict(console, not wrong and not lacks, verdict)
    whys = [*wrong, *lacks]
    for sentence in whys[:WHYS]:
        console.print(f"- {escape(sentence)}")
    if len(whys) > WHYS:
        console.print(f"- and {len(whys) - WHYS} more")
    return is_sold and not wrong and not lacks


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
    columns = (Column(name, justify="right") for name in ("truth", *outcome.values))
    table = Table(
        Column("busiest counters", min_width=NAME_MAX),
        *columns,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    sizes = Counter(event.counter for event in events if not is_witness(event.counter))
    busiest = [(counter, [counter]) for counter, _ in sizes.most_common(BUSIEST)]
    for name, counters in (*busiest, (f"all {len(sizes):,} counters", list(sizes))):
        true = sum(truth[counter] for counter in counters)
        sums = [
            sum(values.get(counter, 0) for counter in counters)
            for values in outcome.values.values()
        ]
        marked = (f"{each:,}" if each == true else f"[bold red]{each:,}[/]" for each in sums)
        table.add_row(escape(name[:NAME_MAX]), f"{true:,}", *marked)
    return table


def _print_verdict(console: Console, is_right: bool, sentence: str) -> None:
    console.print(
        f"[bold green]✓[/] {escape(sentence)}" if is_right else f"[bold red]✗[/] {escape(sentence)}"
    )
