"""`capture` and `release`: a hold ends.

Rule 1: A hold ends once, so each may be run again after any failure, and says how it ended.
"""

from typing import Annotated

import typer

from ledger import Hold
from ledgerctl.arguments import Counter, Id, whole_number
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, command


@command("capture", LIMITS, context_settings={"ignore_unknown_options": True})  # -2 is an amount and no option
def capture(
    call: Call,
    counter: Counter,
    id_: Id,
    amount: Annotated[
        int | None,
        typer.Argument(help="What counts; without it, all of it.", metavar="[AMOUNT]", parser=whole_number),
    ] = None,
) -> None:
    """Let a hold count, all of it or a part; the rest goes back."""
    receipt = call.ledger.capture(Hold.parse(counter, id_), amount)
    change, outcome = receipt.delta.change, receipt.outcome
    call.document({"outcome": outcome, "counter": counter, "change": change, "id": id_})
    means = "it counts" if outcome == "recorded" else "it was captured before and counts once"
    call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")


@command("release", LIMITS)
def release(call: Call, counter: Counter, id_: Id) -> None:
    """Let a hold go: nothing of it counts."""
    call.ledger.release(Hold.parse(counter, id_))
    call.document({"outcome": "released", "counter": counter, "id": id_})
    call.say(f"released: nothing of it counts in {counter}", style="green")
