"""Who makes calls of holds in several wallets that several processes share, each with a length and
an order of its own.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lab.histories.judges.shared_holds import Call, Told
from lab.histories.stage.stage import LONG, SHORT, Stage, one_of, rest
from ledger.client import programs
from ledger.client.hold_all import hold_all, prepare
from ledger.client.holds import Hold
from ledger.client.preparing import Rules
from ledger.core.checks import to_datetime
from ledger.core.errors import HoldEnded, InvalidTime, LedgerError, LimitReached
from ledger.core.values import Delta
from simulator.process import Script
from simulator.world import World

LENGTHS = (30, 300, 10**6)


@dataclass
class Sharers:
    """The processes that share calls. rules: those of a process that begins."""

    stage: Stage
    rules: Callable[[str], Rules]
    wallets: Sequence[str]
    calls: list[Call] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.stage.world

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
        self.stage.counts[f"shared {answer}"] += 1
        self.stage.answered(Told(call, answer, before))
