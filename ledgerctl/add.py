"""`add`, `hold`, `holds`, `capture`, `release`: one change, and a part of a limit that is set aside for a while.

Rule 1: What was given no key gets one here, before anything is sent, so that whatever happens the same can be sent
again by the command that is printed.
Rule 2: That command names the table and all that chooses the lane, so it is the same in any environment.
Rule 3: A command without a key is never to be repeated as it was typed.
Rule 4: A hold ends once, so each end may be run again after any failure, and says how it ended.
Rule 5: A hold whose time is over stands there until somebody is short of it, who ends it.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from ledger import Hold
from ledger.checks import to_datetime
from ledger.errors import OutcomeUnknown, shown
from ledger.message import time_of, time_text
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import (
    NEGATIVE,
    At,
    Counter,
    HomeRegion,
    Key,
    NewCounter,
    command,
    whole_number,
)
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, UNKNOWN, Wrong

LENGTH = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d)", re.ASCII)
Id = Annotated[str, typer.Argument(help="The hold's id, as `hold` and `holds` print it.", metavar="ID")]
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
KEY_BYTES = 10
LANES_BY = ("LEDGER_SHARDS", "LEDGER_LIMITS", "LEDGER_PERIODS")
"""What chooses the lane or the gate, and is no option."""


def _number(text: str, metavar: str) -> Any:
    return typer.Argument(help=text, metavar=metavar, parser=whole_number)


@dataclass(frozen=True, slots=True)
class Named:
    """A key and a time; made: here, and not given. again: the command that sends the same."""

    key: str
    at: datetime
    made: bool
    again: str


def named(call: Call, words: list[str], key: str | None, at: str | None, home_region: str | None) -> Named:
    """The name of what the `words` of a command ask for. Raises InvalidTime, Wrong."""
    when = None if at is None else time_of(at)
    made = key is None and when is None
    if made:
        key, when = call.surroundings.entropy(KEY_BYTES).hex(), to_datetime(call.surroundings.clock())
    if key is None or when is None:
        raise Wrong("InvalidKey", "--key and --at go together.", "Give both, or neither: then both are made.")
    region = home_region or call.settings.region
    command = ["ledgerctl", *words, "--key", key, "--at", time_text(when), "--home-region", region, *call.pinned()]
    given = [(name, call.surroundings.environ.get(name)) for name in LANES_BY]
    environ = "".join(f"{name}={shlex.quote(value)} " for name, value in given if value)
    return Named(key, when, made, environ + shlex.join(command))


@contextmanager
def sending(name: Named, what: str) -> Iterator[None]:
    """Raises Wrong where nobody knows whether something was done; `what` says that."""
    try:
        yield
    except (OutcomeUnknown, KeyboardInterrupt) as failure:
        why = str(failure.__cause__ or type(failure).__name__).rstrip(".")
        how = "only by this command, for the one you typed makes another" if name.made else "it counts once"
        known = INTERRUPTED if isinstance(failure, KeyboardInterrupt) else NO_ANSWER
        message = f"Nobody knows whether {what}: there was no answer ({why})."
        remedy = f"Send the same again, {how}:\n{name.again}"
        raise Wrong("OutcomeUnknown", message, remedy, UNKNOWN if name.made else known) from None


@command("add", context_settings=NEGATIVE)
def add(
    call: Call,
    counter: NewCounter,
    change: Annotated[int, _number("A whole number, such as -6.", "CHANGE")],
    key: Key = None,
    at: At = None,
    home_region: HomeRegion = None,
) -> None:
    """Add one change to a counter; the same key and time count once.

    Where the counter has a limit and the change would pass it, the exit code is 1 and nothing counts.
    """
    name = named(call, ["add", counter, str(change)], key, at, home_region)
    delta = call.ledger.prepare(counter, change, idempotency_key=name.key, at=name.at, region=home_region)
    with sending(name, f"the change of {change:+,} is in {counter}"):
        outcome = call.ledger.apply(delta).outcome
        fields = {"outcome": outcome, "counter": counter, "change": change, "key": name.key, "at": time_text(name.at)}
        call.document(fields | {"token": delta.token, "region": delta.lane.region})
        means = "it is in the table" if outcome == "recorded" else "it was there already and counts once"
        call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")
        if name.made:
            call.say(f"to send the same change again, which counts once:\n{name.again}")


def length_typed(text: str) -> timedelta:
    """How long: 90s, 5m, 2h, 1d. Raises BadParameter."""
    match = LENGTH.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{shown(text)} is not a length of time such as 90s, 5m, 2h or 1d.")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


@command("hold", context_settings=NEGATIVE)
def hold(
    call: Call,
    counters: Annotated[list[str], typer.Argument(help="A counter, or several: the narrowest first.")],
    amount: Annotated[int, _number("As the change that would count, such as -6.", "AMOUNT")],
    expires: Annotated[str, typer.Option(help="How long it holds, from --at on: 90s, 5m, 2h, 1d; up to 400d.")],
    key: Key = None,
    at: At = None,
    home_region: HomeRegion = None,
) -> None:
    """Set an amount of a limited counter aside until it is captured, released or over.

    Of several counters the amount is held in each, or in none. Prints each hold's id. Exit code 1 when a limit is in
    the way.
    """
    length = length_typed(expires)
    name = named(call, ["hold", *counters, str(amount), "--expires", expires], key, at, home_region)
    with sending(name, f"{amount:+,} of {' and of '.join(counters)} is held"):
        given: Any = {"expires": length, "idempotency_key": name.key, "at": name.at, "region": home_region}
        ledger, first = call.ledger, counters[0]
        is_one = len(counters) == 1
        holds = [ledger.hold(first, amount, **given)] if is_one else ledger.hold_all(counters, amount, **given)
    for held in holds:
        call.document(_fields(held) | {"key": name.key, "at": time_text(name.at)})
        call.say(f"held: {amount:+,} of {held.counter} until {show.moment(held.until)}", style="green")
        call.say(held.id)
    if name.made:
        call.note(f"to ask for the same hold again:\n{name.again}")


def _fields(held: Hold) -> dict[str, object]:
    return {"id": held.id, "counter": held.counter, "amount": held.amount, "until": time_text(held.until)}


@command("holds")
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


@command("capture", context_settings=NEGATIVE)
def capture(
    call: Call,
    counter: Counter,
    id_: Id,
    amount: Annotated[int | None, _number("What counts; without it, all of it.", "[AMOUNT]")] = None,
) -> None:
    """Let a hold count, all of it or a part; the rest goes back."""
    receipt = call.ledger.capture(Hold.parse(counter, id_), amount)
    change, outcome = receipt.delta.change, receipt.outcome
    call.document({"outcome": outcome, "counter": counter, "change": change, "id": id_})
    means = "it counts" if outcome == "recorded" else "it was captured before and counts once"
    call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")


@command("release")
def release(call: Call, counter: Counter, id_: Id) -> None:
    """Let a hold go: nothing of it counts."""
    call.ledger.release(Hold.parse(counter, id_))
    call.document({"outcome": "released", "counter": counter, "id": id_})
    call.say(f"released: nothing of it counts in {counter}", style="green")
