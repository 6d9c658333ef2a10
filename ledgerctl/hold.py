"""`hold`: a part of a limit is set aside for a while. It prints the hold's id, by which any process ends it.

Rule 1: As with `add`, the same hold can be asked for again by a command that is printed (again.py).
"""

import re
from datetime import timedelta
from typing import Annotated, Any

import typer

from ledger.errors import OutcomeUnknown, shown
from ledger.message import time_text
from ledgerctl import show
from ledgerctl.again import named, unknown
from ledgerctl.arguments import At, HomeRegion, Key, NewCounter, whole_number
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, command

LENGTH = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d)", re.ASCII)
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def length_typed(text: str) -> timedelta:
    """How long: 90s, 5m, 2h, 1d. Raises BadParameter."""
    match = LENGTH.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{shown(text)} is not a length of time such as 90s, 5m, 2h or 1d.")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


@command("hold", LIMITS, context_settings={"ignore_unknown_options": True})  # -2 is an amount and no option
def hold(
    call: Call,
    counter: NewCounter,
    amount: Annotated[
        int, typer.Argument(help="As the change that would count, such as -6.", metavar="AMOUNT", parser=whole_number)
    ],
    expires: Annotated[str, typer.Option(help="How long it holds, from --at on: 90s, 5m, 2h, 1d; up to 400d.")],
    key: Key = None,
    at: At = None,
    home_region: HomeRegion = None,
) -> None:
    """Set an amount of a limited counter aside until it is captured, released or over.

    Prints the hold's id. Exit code 1 when the limit is in the way.
    """
    length = length_typed(expires)
    name = named(call, ["hold", counter, str(amount), "--expires", expires], key, at, home_region)
    try:
        given: Any = {"idempotency_key": name.key, "at": name.at, "region": home_region}
        held = call.ledger.hold(counter, amount, expires=length, **given)
    except (OutcomeUnknown, KeyboardInterrupt) as failure:
        raise unknown(failure, f"Nobody knows whether {amount:+,} of {counter} is held", name) from None
    fields = {"id": held.id, "counter": counter, "amount": amount, "until": time_text(held.until)}
    call.document(fields | {"key": name.key, "at": time_text(name.at)})
    call.say(f"held: {amount:+,} of {counter} until {show.moment(held.until)}", style="green")
    call.say(held.id)
    if name.made:
        call.note(f"to ask for the same hold again:\n{name.again}")
