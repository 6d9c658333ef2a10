"""`hold`, `holds`, `capture`, `release`: a part of a limit is set aside for a while, listed, and ended by its id.

Rule 1: As with `add`, the same hold can be asked for again by a command that is printed (again.py).
Rule 2: A hold ends once, so each end may be run again after any failure, and says how it ended.
Rule 3: A hold whose time is over stands there until somebody is short of it, who ends it.
"""

import re
from datetime import timedelta
from typing import Annotated, Any

import typer

from ledger import Hold
from ledger.checks import to_datetime
from ledger.errors import OutcomeUnknown, shown
from ledger.message import time_text
from ledgerctl import show
from ledgerctl.again import named, unknown
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, NEGATIVE, At, Counter, HomeRegion, Key, NewCounter, command, whole_number

LENGTH = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d)", re.ASCII)
Id = Annotated[str, typer.Argument(help="The hold's id, as `hold` and `holds` print it.", metavar="ID")]
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def length_typed(text: str) -> timedelta:
    """How long: 90s, 5m, 2h, 1d. Raises BadParameter."""
    match = LENGTH.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{shown(text)} is not a length of time such as 90s, 5m, 2h or 1d.")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


@command("hold", LIMITS, context_settings=NEGATIVE)
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
    call.document(_fields(held) | {"key": name.key, "at": time_text(name.at)})
    call.say(f"held: {amount:+,} of {counter} until {show.moment(held.until)}", style="green")
    call.say(held.id)
    if name.made:
        call.note(f"to ask for the same hold again:\n{name.again}")


def _fields(held: Hold) -> dict[str, object]:
    return {"id": held.id, "counter": held.counter, "amount": held.amount, "until": time_text(held.until)}


@command("holds", LIMITS)
def holds(call: Call, counter: Counter) -> None:
    """List the open holds of a limited counter, those that end first, first.

    A request, and one for each that was filed.
    """
    found = call.reader.holds(counter)
    now = to_datetime(call.surroundings.clock())
    for held in found:
        call.document(_fields(held) | {"over": held.until <= now})
    rows = [(held.id, show.moment(held.until), f"{held.amount:+,}") for held in found]
    call.table_of(("id", "until", "amount"), rows, left=2)
    over = sum(held.until <= now for held in found)
    time_over = f", of {over:,} the time is over" if over else ""
    call.say(f"{show.counted(len(found), 'open hold')} of {counter}{time_over}")
    call.note_cost()


@command("capture", LIMITS, context_settings=NEGATIVE)
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
