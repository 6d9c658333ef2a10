"""`get` and `watch`: what a counter is worth, once or again and again.

Rule 1: A value is always a fresh read of the table, never a cache's.
Rule 2: What the read cost is what DynamoDB says it consumed.
"""

from collections import deque
from contextlib import nullcontext, suppress
from itertools import count as from_
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from ledger.cost import Cost
from ledger.errors import ReadTooSlow, Throttled, TransactionConflict, Unavailable
from ledger.message import time_text
from ledgerctl import completion, show
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.failures import told
from reader import Balance

POINTS = 60
NOT_CLOSED = "not closed: something taken over here is not seen as given yet, so the sum may be outside its limit"
PASSING = (ReadTooSlow, Throttled, TransactionConflict, Unavailable)
Counter = Annotated[str, typer.Argument(help="The counter's name.", autocompletion=completion.counters)]


@command("get", COUNTERS)
def get(call: Call, counter: Counter) -> None:
    """Show a counter: value, parts by Region, pending, cost of the read."""
    balance = call.reader.read(counter)
    consumed = call.meter.take()
    if call.json:
        call.document(fields_of(counter, balance) | show.cost_fields(consumed))
        return
    call.say(Text.assemble(counter, "  ", (f"{balance.value:,}", "bold cyan")))
    if len(balance.by_region) > 1:
        width = max(len(f"{part:,}") for part in balance.by_region.values())
        for region, part in balance.by_region.items():
            call.say(f"  {region:<16}{part:>{width},}")
    call.say(summary(balance))
    if not balance.closed:
        call.say(NOT_CLOSED)
    call.say(f"{show.moment(balance.as_of)}  {show.cost(consumed)}", style="dim")


def fields_of(counter: str, balance: Balance) -> dict[str, object]:
    """A balance for JSON; amounts are integers."""
    sums = {"counter": counter, "value": balance.value, "count": balance.count, "pending": balance.pending}
    parts = {"by_region": dict(balance.by_region), "as_of": time_text(balance.as_of)}
    return {**sums, **parts, "closed": balance.closed}


def summary(balance: Balance) -> str:
    if balance.count == 0:
        return "nobody has added to it; `ledgerctl list` names the counters that are listed, with --scan all there are"
    return f"{show.counted(balance.count, 'change')}, {balance.pending:,} of them pending in the tail"


@command("watch", COUNTERS)
def watch(
    call: Call,
    counter: Counter,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two reads.")] = 2.0,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after that many reads; without it, at Ctrl-C.")] = None,
) -> None:
    """Show a counter's value as it changes, until Ctrl-C.

    Without a terminal, a line for each read. After a read that failed it goes on.
    """
    before: Balance | None = None
    seen: deque[int] = deque(maxlen=POINTS)
    live = None if call.json or not call.out.is_terminal else Live(console=call.out, auto_refresh=False)
    with suppress(KeyboardInterrupt), live or nullcontext():  # Ctrl-C is the way to end it
        for reads in from_(1):
            try:
                balance = call.reader.read(counter)
            except PASSING as failure:
                if before is None:  # what has never worked may never work
                    raise
                _tell(call, failure)
            else:
                consumed = call.meter.take()
                seen.append(balance.value)
                if live:
                    graph = show.sparkline(list(seen), ascii_only=call.out.options.ascii_only)
                    live.update(_screen(counter, balance, before, graph, consumed), refresh=True)
                elif call.json:
                    call.document(fields_of(counter, balance) | show.cost_fields(consumed))
                else:
                    call.say(_line(counter, balance, before))
                before = balance
            if reads == count:
                return
            call.surroundings.pause(interval)


def _tell(call: Call, failure: Exception) -> None:
    wrong = told(failure, call.where)
    if call.json:
        call.tell(wrong)
    call.note(f"{wrong.message} Reading again.", "yellow")


def _line(counter: str, balance: Balance, before: Balance | None) -> str:
    change = f"  {show.signed(balance.value - before.value)}" if before else ""
    return f"{show.moment(balance.as_of)}  {counter}  {balance.value:,}{change}"


def _screen(counter: str, balance: Balance, before: Balance | None, graph: str, consumed: Cost) -> Text:
    change = balance.value - before.value if before else 0
    seconds = (balance.as_of - before.as_of).total_seconds() if before else 0.0
    per_second = change / seconds if seconds else 0.0
    style = "green" if change > 0 else "red" if change < 0 else "dim"
    return Text.assemble(
        (f"{counter}  ", "bold"),
        (f"{balance.value:,}", "bold cyan"),
        (f"  {show.signed(change)}  {per_second:+,.1f} a second\n", style),
        (f"{graph}\n", "cyan"),
        (f"{balance.pending:,} pending  {show.moment(balance.as_of)}  {show.cost(consumed)}", "dim"),
    )
