"""`transfer`: moves an amount from one counter to another.

Rule 1: only the same command finishes a transfer that has begun. So it is printed whatever fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ledger.client.message import time_text
from ledger.core.errors import InvalidInput, LedgerError, PeriodOver, SettingsMismatch
from ledgerctl.add import KeyAndTime, key_and_time
from ledgerctl.call import Call
from ledgerctl.command import NEGATIVE, At, HomeRegion, Key, command, whole_number
from ledgerctl.failures import DATA, INTERRUPTED, NO_ANSWER, UNKNOWN, Wrong

Amount = Annotated[
    int, typer.Argument(help="1 or more, such as 2550.", metavar="AMOUNT", parser=whole_number)
]
Source = Annotated[str, typer.Argument(help="The counter that the amount leaves.")]
Target = Annotated[str, typer.Argument(help="The counter that gets the amount.")]
LEFT = "`ledgerctl standing COUNTER` shows what is left, held and on its way."


@command("transfer", context_settings=NEGATIVE)
def transfer(
    call: Call,
    source: Source,
    target: Target,
    amount: Amount,
    key: Key = None,
    at: At = None,
    home_region: HomeRegion = None,
) -> None:
    """Move an amount from one counter to another. The same key and time move it once.

    If a limit of either is in the way, nothing moves and the exit code is 1.
    """
    name = key_and_time(call, ["transfer", source, target, str(amount)], key, at, home_region)
    with _finished_by(name):
        done = call.ledger.transfer(
            source, target, amount, idempotency_key=name.key, at=name.at, region=home_region
        )
    if done.debit is None or done.credit is None:
        where = source if done.debit is None else target
        message = (
            f"{done.outcome}: the limit of {where} is in the way. Nothing has moved, and that is "
            "final for this key."
        )
        raise Wrong("LimitReached", message, LEFT, DATA)
    fields = {"outcome": done.outcome, "source": source, "target": target, "amount": amount}
    region = done.debit.delta.lane.region
    call.document(fields | {"key": name.key, "at": time_text(name.at), "region": region})
    before = "; it was moved before, and counts once" if done.credit.outcome == "replayed" else ""
    call.say(f"moved: {amount:,} from {source} to {target}{before}", style="green")
    if name.made:
        call.say(f"to send the same transfer again, which counts once:\n{name.again}")


@contextmanager
def _finished_by(name: KeyAndTime) -> Iterator[None]:
    """Raises Wrong, with the command that finishes it, where a transfer may be on its way."""
    try:
        yield
    except (InvalidInput, SettingsMismatch):
        raise
    except PeriodOver as over:
        said = " ".join([str(over), *getattr(over, "__notes__", ())])
        remedy = "No call can finish it. `ledgerctl history` shows what an earlier call debited."
        raise Wrong("PeriodOver", said, remedy, DATA) from None
    except (LedgerError, KeyboardInterrupt) as failure:
        why = str(failure) or type(failure).__name__
        known = INTERRUPTED if isinstance(failure, KeyboardInterrupt) else NO_ANSWER
        message = f"The transfer may be on its way, and is not lost. Its last step failed: {why}"
        remedy = f"Send the same again, only by this command, until it succeeds:\n{name.again}"
        raise Wrong(
            type(failure).__name__, message, remedy, UNKNOWN if name.made else known
        ) from None
