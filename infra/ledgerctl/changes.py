"""`add`: one change, and what is needed to send it again.

Rules: a change that was given no key gets one here, before anything is sent, so that whatever happens the same change
can be sent again by the command that is printed.
"""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Annotated

import typer

from infra.ledgerctl.call import Call
from infra.ledgerctl.command import command
from infra.ledgerctl.failures import NO_ANSWER, Wrong
from ledger.errors import OutcomeUnknown, TableError
from ledger.message import time_of, time_text
from ledger.values import to_datetime

KEY_BYTES = 10


@command("add", context_settings={"ignore_unknown_options": True})  # -6 is a change and no option
def add(
    call: Call,
    counter: Annotated[str, typer.Argument(help="1 to 256 printable ASCII characters without spaces.")],
    change: Annotated[int, typer.Argument(help="A whole number, such as -6.", metavar="CHANGE")],
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
        key, when = call.world.entropy(KEY_BYTES).hex(), to_datetime(call.world.clock())
    if key is None or when is None:
        raise Wrong("InvalidKey", "--key and --at go together.", "Give both, or neither: then both are made.")
    delta = call.ledger.prepare(counter, change, idempotency_key=key, at=when, region=home_region)
    again = f"ledgerctl add {shlex.quote(counter)} {change} --key {shlex.quote(key)} --at {time_text(when)}"
    if delta.lane.region != call.settings.region or len(call.settings.regions) > 1:
        again += f" --home-region {delta.lane.region}"
    try:
        outcome = call.ledger.apply(delta).outcome
    except (TableError, KeyboardInterrupt) as failure:
        if isinstance(failure, OutcomeUnknown | KeyboardInterrupt):
            why = str(failure.__cause__ or type(failure).__name__).rstrip(".")
            message = f"Nobody knows whether the change of {change:+,} is in {counter}: there was no answer ({why})."
            remedy = f"Send the same change again; it counts once:\n{again}"
            raise Wrong("OutcomeUnknown", message, remedy, NO_ANSWER) from None
        raise
    if call.json:
        call.document(
            {
                "outcome": outcome,
                "counter": counter,
                "change": change,
                "key": key,
                "at": time_text(when),
                "token": delta.token,
                "region": delta.lane.region,
            }
        )
        return
    means = "it is in the table" if outcome == "recorded" else "it was there already and counts once"
    call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")
    if made:
        call.say(f"to send the same change again, which counts once:\n{again}")
