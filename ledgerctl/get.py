"""`get` and `watch`: what a counter is or was worth, once, or again and again.

Rule 1: A value is always a fresh read of the table, never a cache's; its cost is what DynamoDB says
it consumed.
Rule 2: `watch` goes on after a failed read, unless none has worked yet: what has never worked may
never work.
"""

from contextlib import suppress
from itertools import count as from_
from typing import Annotated

import typer
from rich.text import Text

from ledger.client.message import time_text
from ledger.core.errors import ReadTooSlow, Throttled, TransactionConflict, Unavailable
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Counter, command
from ledgerctl.failures import meaning
from reader import Balance

PASSING = (ReadTooSlow, Throttled, TransactionConflict, Unavailable)


@command("get")
def get(
    call: Call,
    counter: Counter,
    at: Annotated[
        str | None, typer.Option(help="Only its value at this instant: a time, or a date in UTC.")
    ] = None,
) -> None:
    """Show a counter: value, parts by Region, pending, cost of the read; or its value at an
    instant.
    """
    if (instant := show.time_typed(at)) is not None:
        value = call.reader.value_at(counter, instant)
        consumed = call.meter.take()
        call.document(
            {"counter": counter, "at": time_text(instant), "value": value}
            | show.cost_fields(consumed)
        )
        call.say(Text.assemble(counter, "  ", (f"{value:,}", "bold cyan")))
        call.say(
            f"of the changes before {show.moment(instant)}  {show.cost(consumed)}", style="dim"
        )
        return
    balance = call.reader.read(counter)
    consumed = call.meter.take()
    call.document(show.balance(counter, balance) | show.cost_fields(consumed))
    call.say(Text.assemble(counter, "  ", (f"{balance.value:,}", "bold cyan")))
    width = max((len(f"{part:,}") for part in balance.by_region.values()), default=0)
    for region, part in balance.by_region.items() if len(balance.by_region) > 1 else ():
        call.say(f"  {region:<16}{part:>{width},}")
    if balance.count:
        call.say(
            f"{show.counted(balance.count, 'change')}, {balance.pending:,} of them pending in the "
            "tail"
        )
    else:
        lists = "`ledgerctl list` names the counters of the directory, `--scan` all there are."
        plan = call.settings.plan(counter)
        if plan.keep is not None and plan.term is None:
            lists = f"Only its periods count: `ledgerctl periods {counter}`."
        call.say("nobody has added to it")
        call.hint(lists)
    if not balance.closed:
        call.say(show.NOT_CLOSED)
    call.say(f"{show.moment(balance.as_of)}  {show.cost(consumed)}", style="dim")


@command("watch")
def watch(
    call: Call,
    counter: Counter,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two reads.")] = 2.0,
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many reads; without it, at Ctrl-C.")
    ] = None,
) -> None:
    """Show a counter's value as it changes, until Ctrl-C. It goes on after a failed read."""
    before: Balance | None = None
    with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
        for reads in from_(1):
            try:
                balance = call.reader.read(counter)
            except PASSING as failure:
                if before is None:
                    raise
                wrong = meaning(failure, call.where)
                if call.json:
                    call.report(wrong)
                call.note(f"{wrong.message} Reading again.", "yellow")
            else:
                call.document(show.balance(counter, balance) | show.cost_fields(call.meter.take()))
                change = f"  {balance.value - before.value:+,}" if before else ""
                call.say(f"{show.moment(balance.as_of)}  {counter}  {balance.value:,}{change}")
                before = balance
            if reads == count:
                return
            call.surroundings.pause(interval)
