"""`add`: one change.

Rule 1: Whatever becomes of it, the same change can be sent again by a command that is printed (again.py).
"""

from typing import Annotated

import typer

from ledger.errors import OutcomeUnknown
from ledger.message import time_text
from ledgerctl.again import named, unknown
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, NEGATIVE, At, HomeRegion, Key, NewCounter, command, whole_number


@command("add", COUNTERS, context_settings=NEGATIVE)
def add(
    call: Call,
    counter: NewCounter,
    change: Annotated[int, typer.Argument(help="A whole number, such as -6.", metavar="CHANGE", parser=whole_number)],
    key: Key = None,
    at: At = None,
    home_region: HomeRegion = None,
) -> None:
    """Add one change to a counter; the same key and time count once.

    Where the counter has a limit and the change would pass it, the exit code is 1 and nothing counts.
    """
    name = named(call, ["add", counter, str(change)], key, at, home_region)
    delta = call.ledger.prepare(counter, change, idempotency_key=name.key, at=name.at, region=home_region)
    try:
        outcome = call.ledger.apply(delta).outcome
        fields = {"outcome": outcome, "counter": counter, "change": change, "key": name.key, "at": time_text(name.at)}
        call.document(fields | {"token": delta.token, "region": delta.lane.region})
        means = "it is in the table" if outcome == "recorded" else "it was there already and counts once"
        call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")
        if name.made:
            call.say(f"to send the same change again, which counts once:\n{name.again}")
    except (OutcomeUnknown, KeyboardInterrupt) as failure:
        message = f"Nobody knows whether the change of {change:+,} is in {counter}"
        raise unknown(failure, message, name) from None
