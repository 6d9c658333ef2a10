"""`add`, `hold`, `holds`, `capture`, `release`: one change, and a part of a limit that you set
aside for a while.

Rule 1: A change without a key gets one before anything is sent, and the command prints a command
that sends the same again, whatever happens.
Rule 2: That command names the table and all that chooses the lane, so it is the same in any
environment.
Rule 3: Nobody may repeat a command without a key as it was typed.
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
from ledger.client.message import time_of, time_text
from ledger.core.checks import to_datetime
from ledger.core.errors import OutcomeUnknown, shown
from ledger.core.keys import at_of, needs_at
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
Id = Annotated[
    str, typer.Argument(help="The hold's id, as `hold` and `holds` print it.", metavar="ID")
]
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
KEY_BYTES = 10
LANES_BY = ("LEDGER_SHARDS", "LEDGER_LIMITS", "LEDGER_PERIODS")
"""The variables that choose the lane or the gate, and have no option."""


def _number(text: str, metavar: str) -> Any:
    return typer.Argument(help=text, metavar=metavar, parser=whole_number)


@dataclass(frozen=True, slots=True)
class KeyAndTime:
    """A key and a time.

    made: ledgerctl made them, nobody gave them. again: the command that sends the same.
    """

    key: str
    at: datetime
    made: bool
    again: str


def key_and_time(
    call: Call, words: list[str], key: str | None, at: str | None, home_region: str | None
) -> KeyAndTime:
    """The key and time of the command in `words`. Raises InvalidTime, Wrong."""
    when = at_of(key, None if at is None else time_of(at))
    made = key is None and when is None
    if made:
        key, when = (
            call.surroundings.entropy(KEY_BYTES).hex(),
            to_datetime(call.surroundings.clock()),
        )
    if key is None or when is None:
        why = "--at came alone" if key is None else f"the key {shown(key)} needs --at"
        message = f"--key and --at go together, and {why}. Nothing was sent."
        remedy = f"Give both, or neither, and ledgerctl makes both. {needs_at(key)}"
        raise Wrong("InvalidKey", message, remedy)
    region = home_region or call.settings.region
    command = [
        "ledgerctl",
        *words,
        "--key",
        key,
        "--at",
        time_text(when),
        "--home-region",
        region,
        *call.pinned(),
    ]
    given = [(name, call.surroundings.environ.get(name)) for name in LANES_BY]
    environ = "".join(f"{name}={shlex.quote(value)} " for name, value in given if value)
    return KeyAndTime(key, when, made, environ + shlex.join(command))


@contextmanager
def sending(name: KeyAndTime, what: str) -> Iterator[None]:
    """Raises Wrong where nobody knows whether something was done. what: what may be done."""
    try:
        yield
    except (OutcomeUnknown, KeyboardInterrupt) as failure:
        why = str(failure.__cause__ or type(failure).__name__).rstrip(".")
        how = (
            "only by this command, because the one you typed would add another change"
            if name.made
            else "it counts once"
        )
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
    partial: Annotated[
        bool,
        typer.Option("--partial", help="If the limit leaves less, count as much as it leaves."),
    ] = False,
) -> None:
    """Add one change to a counter. The same key and time count once.

    If the change would pass the counter's limit, nothing counts and the exit code is 1; with
    --partial as much of it counts as is left in all Regions together.
    """
    words = ["add", counter, str(change), *["--partial"] * partial]
    name = key_and_time(call, words, key, at, home_region)
    named: Any = {"idempotency_key": name.key, "at": name.at, "region": home_region}
    prepared = None if partial else call.ledger.prepare(counter, change, **named)
    what = f"a part of {change:+,}" if partial else f"the change of {change:+,}"
    with sending(name, f"{what} is in {counter}"):
        if prepared is None:
            receipt = call.ledger.add_up_to(counter, change, **named)
        else:
            receipt = call.ledger.apply(prepared)
        outcome, delta = receipt.outcome, receipt.delta
        fields = {
            "outcome": outcome,
            "counter": counter,
            "change": receipt.change,
            **({"asked": change} if partial else {}),
            "key": name.key,
            "at": time_text(name.at),
        }
        call.document(fields | {"token": delta.token, "region": delta.lane.region})
        means = (
            "it is in the table"
            if outcome == "recorded"
            else "it was there already and counts once"
        )
        of = f" of {change:+,}" if partial else ""
        call.say(f"{outcome}: {receipt.change:+,}{of} to {counter}; {means}", style="green")
        if name.made:
            call.say(f"to send the same change again, which counts once:\n{name.again}")


def length_typed(text: str) -> timedelta:
    """The length of time that was typed: 90s, 5m, 2h, 1d. Raises BadParameter."""
    match = LENGTH.fullmatch(text)
    if match is None:
        raise typer.BadParameter(
            f"{shown(text)} is not a length of time such as 90s, 5m, 2h or 1d."
        )
    return timedelta(**{UNITS[match[2]]: int(match[1])})


@command("hold", context_settings=NEGATIVE)
def hold(
    call: Call,
    counters: Annotated[
        list[str], typer.Argument(help="One counter, or several with the narrowest first.")
    ],
    amount: Annotated[int, _number("The change that would count, such as -6.", "AMOUNT")],
    expires: Annotated[
        str, typer.Option(help="How long to hold it, from --at on: 90s, 5m, 2h, 1d; up to 400d.")
    ],
    key: Key = None,
    at: At = None,
    home_region: HomeRegion = None,
) -> None:
    """Set an amount of a limited counter aside, until you capture it, release it or its time is
    over.

    Of several counters, each holds the amount, or none does. It prints the id of each hold. If a
    limit is in the way, nothing is held and the exit code is 1.
    """
    length = length_typed(expires)
    name = key_and_time(
        call, ["hold", *counters, str(amount), "--expires", expires], key, at, home_region
    )
    with sending(name, f"{amount:+,} of {' and of '.join(counters)} is held"):
        given: Any = {
            "expires": length,
            "idempotency_key": name.key,
            "at": name.at,
            "region": home_region,
        }
        ledger, first = call.ledger, counters[0]
        is_one = len(counters) == 1
        holds = (
            [ledger.hold(first, amount, **given)]
            if is_one
            else ledger.hold_all(counters, amount, **given)
        )
    for held in holds:
        call.document(_fields(held) | {"key": name.key, "at": time_text(name.at)})
        call.say(
            f"held: {amount:+,} of {held.counter} until {show.moment(held.until)}", style="green"
        )
        call.say(held.id)
    if name.made:
        call.note(f"to send the same hold again, which holds once:\n{name.again}")


def _fields(held: Hold) -> dict[str, object]:
    return {
        "id": held.id,
        "counter": held.counter,
        "amount": held.amount,
        "until": time_text(held.until),
    }


@command("holds")
def holds(call: Call, counter: Counter) -> None:
    """List the open holds of a limited counter; the one that ends next comes first.

    It costs a request for the gates of each Region, one for each lane, and two or three for each
    hundred holds that are too many for a gate.
    """
    found = call.reader.holds(counter)
    now = to_datetime(call.surroundings.clock())
    for held in found:
        call.document(_fields(held) | {"over": held.until <= now})
    rows = [(held.id, show.moment(held.until), f"{held.amount:+,}") for held in found]
    call.table_of(("id", "until", "amount"), rows, left=2)
    # Rule 5: a hold whose time is over stays there until a call is short of its amount, and ends
    # it.
    over = sum(held.until <= now for held in found)
    time_over = f", of {over:,} the time is over" if over else ""
    call.say(f"{show.counted(len(found), 'open hold')} of {counter}{time_over}")
    call.note_cost()


@command("capture", context_settings=NEGATIVE)
def capture(
    call: Call,
    counter: Counter,
    id_: Id,
    amount: Annotated[
        int | None, _number("How much of the hold counts; without it, all.", "[AMOUNT]")
    ] = None,
) -> None:
    """Count all or a part of a hold; the rest is free again."""
    # Rule 4: a hold ends once, so you may run each end again after any failure; it says how the
    # hold ended.
    receipt = call.ledger.capture(Hold.parse(counter, id_), amount)
    change, outcome = receipt.delta.change, receipt.outcome
    call.document({"outcome": outcome, "counter": counter, "change": change, "id": id_})
    means = "it counts" if outcome == "recorded" else "it was captured before and counts once"
    call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")


@command("release")
def release(call: Call, counter: Counter, id_: Id) -> None:
    """Release a hold: nothing of it counts."""
    call.ledger.release(Hold.parse(counter, id_))
    call.document({"outcome": "released", "counter": counter, "id": id_})
    call.say(f"released: nothing of it counts in {counter}", style="green")
