"""`watch`: what a counter is worth, again and again, a line for each read.

Rule 1: After a read that failed it goes on, unless none has worked yet.
"""

from contextlib import suppress
from itertools import count as from_
from typing import Annotated

import typer

from ledger.errors import ReadTooSlow, Throttled, TransactionConflict, Unavailable
from ledgerctl import show
from ledgerctl.arguments import Counter
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.failures import meaning
from reader import Balance

PASSING = (ReadTooSlow, Throttled, TransactionConflict, Unavailable)


@command("watch", COUNTERS)
def watch(
    call: Call,
    counter: Counter,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two reads.")] = 2.0,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after that many reads; without it, at Ctrl-C.")] = None,
) -> None:
    """Show a counter's value as it changes, until Ctrl-C. After a read that failed it goes on."""
    before: Balance | None = None
    with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
        for reads in from_(1):
            try:
                balance = call.reader.read(counter)
            except PASSING as failure:
                if before is None:  # what has never worked may never work
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
