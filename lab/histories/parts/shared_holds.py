"""Calls of holds in several wallets that several processes make, each with a length and an order of
its own.

Rule 1: one key and list is one call, whatever the length: each wallet is held once for it, at every
write of a gate.
Rule 2: the answer of a call is one. Who was refused is the last word of a call for ever, and so is
that it has ended; what was granted may end. A time that is over before anything was decided may be
corrected, by a longer one.
"""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lab.histories.stage.theatre import LONG, SHORT, one_of, rest
from ledger.client import programs
from ledger.client.hold_all import hold_all, prepare
from ledger.client.programs import Rules
from ledger.core import tokens
from ledger.core.checks import to_datetime
from ledger.core.errors import HoldEnded, InvalidTime, LedgerError, LimitReached
from ledger.core.values import Delta
from ledger.gate.gate import Gate
from ledger.gate.hold import Hold
from simulator.process import Script
from simulator.world import World

LENGTHS = (30, 300, 10**6)
AFTER = {
    "refused": {"refused"},
    "ended": {"ended"},
    "held": {"held", "ended"},
    "over": {"refused", "held", "ended"},
}
"""What may be answered after an answer; "over": its time is over, and nothing was decided."""


@dataclass
class Call:
    """A call of holds, as it is named. told: what its callers were told."""

    key: str
    at: datetime
    region: str
    wallets: Sequence[str]
    amount: int
    told: set[str] = field(default_factory=set)


@dataclass
class Sharers:
    """The processes that share calls. rules: those of a process that begins."""

    world: World
    rules: Callable[[str], Rules]
    wallets: Sequence[str]
    wrong: list[str]
    counts: Counter[str]
    calls: list[Call] = field(default_factory=list)
    held: dict[tuple[str, bytes], str] = field(default_factory=dict)

    def see(self, gate: Gate) -> None:
        """What a gate holds since a write."""
        for token in gate.held:
            counter, name = gate.lane.counter, tokens.to_bytes(token)[:14]  # all but the length
            if self.held.setdefault((counter, name), token) != token:
                self.wrong.append(
                    f"{counter} is held twice for one call: {self.held[counter, name]}, {token}"
                )

    def play(self, name: str, region: str) -> Script:
        rules = self.rules(region)
        for number in range(2 + self.world.choices.pick(6)):
            call = self._call(f"{name}/{number}", region)
            granted = yield from self._make(call, rules)
            yield rest(self.world.choices, one_of(self.world.choices, (SHORT, LONG)))
            for delta in granted if self.world.choices.pick(2) else ():
                with suppress(LedgerError):
                    if self.world.choices.pick(2):
                        yield from programs.release(rules, Hold(delta))
                    else:
                        yield from programs.capture(rules, Hold(delta), 0)

    def _call(self, key: str, region: str) -> Call:
        """One of the last calls, or a new one."""
        choices = self.world.choices
        if self.calls and choices.pick(3):
            return one_of(choices, self.calls[-3:])
        wallets = [wallet for wallet in self.wallets if choices.pick(4)] or self.wallets
        amount = one_of(choices, (-2, -1, 1, 2, 3))
        self.calls.append(Call(key, to_datetime(self.world.now_ms), region, wallets, amount))
        return self.calls[-1]

    def _make(self, call: Call, rules: Rules) -> Generator[Any, Any, Sequence[Delta]]:
        """Returns the holds that were granted."""
        choices, before = self.world.choices, set(call.told)
        wallets = call.wallets if choices.pick(2) else call.wallets[::-1]
        length = timedelta(milliseconds=one_of(choices, LENGTHS) * self.world.step_ms)
        try:
            asked = prepare(rules, wallets, call.amount, length, call.key, call.at, call.region)
            granted: Sequence[Delta] = yield from hold_all(rules, asked)
        except LimitReached:
            self._told(call, "refused", before)
        except HoldEnded:
            self._told(call, "ended", before)
        except InvalidTime:
            self._told(call, "over", before)
        except LedgerError:
            pass
        else:
            self._told(call, "held", before)
            return granted
        return ()

    def _told(self, call: Call, answer: str, before: set[str]) -> None:
        """before: what was told when the attempt began.

        Two that overlap may be told that it is held, and has ended.
        """
        call.told.add(answer)
        self.counts[f"shared {answer}"] += 1
        not_after = [was for was in before - {"over"} if answer not in AFTER[was]]
        if not_after or ("refused" in call.told and call.told & {"held", "ended"}):
            self.wrong.append(f"{call.key} is {answer}, and was {', '.join(sorted(call.told))}")
