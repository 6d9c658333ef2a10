"""What the demo prints of the flash sale: a table and a verdict.

Rule 1: it fits 80 columns, and nothing is said by colour alone, as in screen.py.
Rule 2: the verdict fails also when the other designs kept the limit: such a sale shows too little.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.demo.sale import BUYERS, SEATS, Sold

OPENING = (
    f"A flash sale first, on a simulated table: {SEATS:,} seats, {BUYERS:,} buyers in two\n"
    "Regions. Answers get lost, buyers ask again, the link is cut in the middle."
)


def told(console: Console, results: Sequence[Sold]) -> bool:
    """Print the results, ours first; whether they are as they must be."""
    table = Table(show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", min_width=18)
    for name in ("sold", "oversold", "left empty", "refused", "wrongly refused *"):
        table.add_column(name, justify="right")
    for each in results:
        wrong = (each.oversold, each.empty, each.wrongly_refused)
        oversold, empty, wrongly = (f"[{'bold red' if n else 'green'}]{n:,}[/]" for n in wrong)
        table.add_row(each.name, f"{each.sold:,}", oversold, empty, f"{each.refused:,}", wrongly)
    table.caption, table.caption_justify = "* while a seat was free", "left"
    console.print(table)
    ours, others = results[0], results[1:]
    if not ours.is_right:
        console.print("[bold red]Our sale is wrong.[/] Please report it, with the seed.")
    elif any(other.is_right for other in others):
        console.print("[bold red]This sale shows too little:[/] another design kept to the seats, too.")
    else:
        console.print(f"[bold green]Ours sold {SEATS:,}, refused the rest, and nobody while a seat was free.[/]")
    return ours.is_right and not any(other.is_right for other in others)
