"""`add`: one change, and what is needed to send it again.

Rule 1: A change that was given no key gets one here, before anything is sent, so that whatever happens the same change
can be sent again by the command that is printed.
Rule 2: That command names the table and all that chooses the lane, so it is the same change in any environment.
Rule 3: `add` without a key is never to be repeated as it was typed.
"""

import shlex
from datetime import datetime
from typing import Annotated

import typer

from ledger.checks import to_datetime
from ledger.errors import OutcomeUnknown, shown
from ledger.message import time_of, time_text
from ledger.values import Delta
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, UNKNOWN, Wrong
from ledgerctl.templates import NUMBER

KEY_BYTES = 10


def whole_number(text: str) -> int:
    """What was typed, digit by digit: int() takes "1_000" and " 3", too. Raises BadParameter."""
    if not NUMBER.fullmatch(text) or text.startswith("--"):
        raise typer.BadParameter(f"{shown(text)} is not a whole number such as 12 or -6.")
    return int(text)


@command("add", context_settings={"ignore_unknown_options": True})  # -6 is a change and no option
def add(
    call: Call,
    counter: Annotated[str, typer.Argument(help="1 to 256 printable ASCII characters without spaces.")],
    change: Annotated[int, typer.Argument(help="A whole number, such as -6.", metavar="CHANGE", parser=whole_number)],
    key: Annotated[
        str | None, typer.Option(help="The change's own name; with --at. Without both, one is made.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="When it was first asked for: 2010-12-01T08:26:00Z.")] = None,
    home_region: Annotated[
        str | None, typer.Option(help="Where it was first asked for, when that is not --region: a fail-over.")
    ] = None,
) -> None:
    """Add one change to a counter; the same key and time count once."""
    when: datetime | None = None if at is None else time_of(at)
    made = key is None and when is None
    if made:
        key, when = call.surroundings.entropy(KEY_BYTES).hex(), to_datetime(call.surroundings.clock())
    if key is None or when is None:
        raise Wrong("InvalidKey", "--key and --at go together.", "Give both, or neither: then both are made.")
    delta = call.ledger.prepare(counter, change, idempotency_key=key, at=when, region=home_region)
    again = _again(call, delta, key, when)
    try:
        outcome = call.ledger.apply(delta).outcome
        _say(call, delta, outcome, key, when)
        if made and not call.json:
            call.say(f"to send the same change again, which counts once:\n{again}")
    except (OutcomeUnknown, KeyboardInterrupt) as failure:
        raise _unknown(failure, delta, again, made) from None


def _say(call: Call, delta: Delta, outcome: str, key: str, at: datetime) -> None:
    counter, change = delta.lane.counter, delta.change
    if call.json:
        fields = {"outcome": outcome, "counter": counter, "change": change, "key": key, "at": time_text(at)}
        call.document(fields | {"token": delta.token, "region": delta.lane.region})
        return
    means = "it is in the table" if outcome == "recorded" else "it was there already and counts once"
    call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")


def _again(call: Call, delta: Delta, key: str, at: datetime) -> str:
    """The command that sends the same change again, from any shell."""
    shards = call.surroundings.environ.get("LEDGER_SHARDS")
    words = ["ledgerctl", "add", delta.lane.counter, str(delta.change), "--key", key, "--at", time_text(at)]
    words += ["--home-region", delta.lane.region, *call.pinned()]
    return (f"LEDGER_SHARDS={shlex.quote(shards)} " if shards else "") + shlex.join(words)


def _unknown(failure: BaseException, delta: Delta, again: str, made: bool) -> Wrong:
    why = str(failure.__cause__ or type(failure).__name__).rstrip(".")
    change, counter = delta.change, delta.lane.counter
    message = f"Nobody knows whether the change of {change:+,} is in {counter}: there was no answer ({why})."
    how = "only by this command, for the one you typed makes another change" if made else "it counts once"
    known = INTERRUPTED if isinstance(failure, KeyboardInterrupt) else NO_ANSWER
    return Wrong("OutcomeUnknown", message, f"Send the same change again, {how}:\n{again}", UNKNOWN if made else known)
