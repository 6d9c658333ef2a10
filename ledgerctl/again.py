"""The name of a change or a hold that is asked for, and the command that sends the same one again.

Rule 1: What was given no key gets one here, before anything is sent, so that whatever happens the same can be sent
again by the command that is printed.
Rule 2: That command names the table and all that chooses the lane, so it is the same in any environment.
Rule 3: A command without a key is never to be repeated as it was typed.
"""

import shlex
from dataclasses import dataclass
from datetime import datetime

from ledger.checks import to_datetime
from ledger.message import time_of, time_text
from ledgerctl.call import Call
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, UNKNOWN, Wrong

KEY_BYTES = 10
LANES_BY = ("LEDGER_SHARDS", "LEDGER_LIMITS")
"""What chooses the lane or the gate, and is no option."""


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


def unknown(failure: BaseException, message: str, name: Named) -> Wrong:
    """Nobody knows whether something was done; `message` says what."""
    why = str(failure.__cause__ or type(failure).__name__).rstrip(".")
    how = "only by this command, for the one you typed makes another" if name.made else "it counts once"
    known = INTERRUPTED if isinstance(failure, KeyboardInterrupt) else NO_ANSWER
    code = UNKNOWN if name.made else known
    remedy = f"Send the same again, {how}:\n{name.again}"
    return Wrong("OutcomeUnknown", f"{message}: there was no answer ({why}).", remedy, code)
