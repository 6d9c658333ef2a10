"""The writers of a history: changes, alone or in packs, of their own and of others, in one company
and then in another.

Rule 1: Delta k changes its counter by 4^k, so a sum names its deltas.
Rule 2: A retry, a redelivery and a fail-over send the same delta, whoever sends it. What was not
acknowledged is sent again, with whatever else is at hand, so a token stands in several packs and
alone.
Rule 3: The packs of a batch are put one by one, so that it may end between two of them.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lab.histories.judges.checker import Asked, Record, Rivals
from lab.histories.judges.lanes import COUNTER
from lab.histories.parts.cast import NUMBERS_MAX, Cast
from lab.histories.stage.stage import LONG, SHORT, one_of, rest
from ledger.core import tokens
from ledger.core.errors import LedgerError
from ledger.core.requests import Now, Put, Request, Together
from ledger.core.running import through
from ledger.core.values import Delta, Receipt
from ledger.lane.add import add, add_packed
from simulator.process import Move, Script, Sleep

SENDS_MAX = 12
PACKED_MAX = 5
RESERVED = 4
LATENESSES = (0, 1, 1, 6)
"""How long ago a change was asked for, at most, in allowed latenesses: now, in a queue but on
time, or a backfill.
"""


@dataclass(frozen=True, slots=True)
class Sender:
    """What asks for changes in `home`.

    grain_ms: of the times that its events carry. ahead_ms: of its clock.
    """

    cast: Cast
    home: str
    grain_ms: int = 1
    ahead_ms: int = 0

    def ask(self, number: int, wall_ms: int) -> Asked:
        settings, choices = self.cast.settings, self.cast.choices
        late_ms = settings.allowed_lateness_ms * one_of(choices, LATENESSES)
        ms = wall_ms + self.ahead_ms - choices.pick(1 + late_ms)
        token = tokens.keyed(COUNTER, str(number), max(0, ms - ms % self.grain_ms))
        asked = Asked(number, Delta(settings.lane_for(COUNTER, token, self.home), token, 4**number))
        self.cast.record.asked.append(asked)
        return asked

    def rival(self, asked: Asked) -> Asked:
        """Another change under the token of one that was asked for."""
        (number,) = self.cast.numbers(1)
        other, record = (
            Asked(number, Delta(asked.delta.lane, asked.delta.token, 4**number)),
            self.cast.record,
        )
        record.asked.append(other)
        record.rivals.append(Rivals(asked, other))
        record.lost |= {asked.number, number}
        return other

    def acknowledged(self, asked: Asked, region: str) -> None:
        rivals = next(
            (each for each in self.cast.record.rivals if asked.number in each.numbers), None
        )
        if rivals is not None:
            rivals.acknowledged = True
            return
        asked.acknowledged = True
        if region == asked.delta.lane.region:
            stage = self.cast.stage
            late_ms = stage.world.now_ms - tokens.time_ms(asked.delta.token)
            latest_ms = self.cast.settings.allowed_lateness_ms - stage.faults.skew_ms
            asked.on_time = asked.on_time or late_ms <= latest_ms


def enter_writer(sender: Sender, packs: bool, pace: Callable[[], Sequence[int]]) -> None:
    """Of one change; or of several, in some histories with packs."""
    cast = sender.cast
    several = packs and cast.choices.pick(2) == 1
    numbers = cast.numbers(2 + cast.choices.pick(PACKED_MAX - 1) if several else 1)
    cast.stage.enter(
        f"writer {numbers.start}", sender.home, partial(writes, numbers, sender, pace(), [])
    )


def writes(numbers: range, sender: Sender, pace: Sequence[int], mine: list[Asked]) -> Script:
    """Asks for the changes `numbers` and sends them until each is acknowledged; then perhaps again
    or elsewhere.

    mine: outlives a crash, as messages in a queue do.
    """
    choices, record = sender.cast.choices, sender.cast.record
    packs = len(numbers) > 1
    yield rest(choices, pace)
    while len(mine) < len(numbers):
        mine.append(sender.ask(numbers[len(mine)], (yield Now()).wall_ms))
        if (
            packs
            and len(mine) == len(numbers)
            and record.numbers < NUMBERS_MAX - RESERVED
            and choices.pick(12) == 11
        ):
            mine.append(sender.rival(mine[-1]))  # before anybody else can have sent it
    region, waiting = sender.home, list(mine)
    for _ in range(SENDS_MAX):
        sent = waiting + [
            one_of(choices, record.asked) for _ in range(choices.pick(4) if packs else 0)
        ]
        deltas = [asked.delta for asked in sent]
        outcomes = yield from _put(deltas, record)
        for asked, outcome in zip(sent, outcomes, strict=True):
            if isinstance(outcome, Receipt):
                sender.acknowledged(asked, region)
        waiting = [
            a
            for a, outcome in zip(waiting, outcomes, strict=False)
            if isinstance(outcome, LedgerError)
        ]
        if waiting:
            yield rest(choices, SHORT)
        else:
            if choices.pick(3) != 2:
                return
            yield rest(choices, LONG)  # a redelivery, often after what was sent was cleaned
            waiting = [asked for asked in mine if choices.pick(2)] or mine[:1]
        if choices.pick(3) == 2:
            region = sender.cast.any_region()  # a fail-over
            yield Move(region)


def _put(
    deltas: list[Delta], record: Record
) -> Generator[Request | Sleep, Any, list[Receipt | LedgerError]]:
    if len(deltas) == 1:
        try:
            return [(yield from add(deltas[0]))]
        except LedgerError as failure:
            return [failure]

    def step(request: Request) -> Generator[Request | Sleep, Any, Any]:
        if not isinstance(request, Together):
            return (yield request)
        answers = []
        for each in request.requests:
            record.packs += isinstance(each, Put)
            try:
                answers.append((yield each))
            except LedgerError as failure:
                answers.append(failure)
        return tuple(answers)

    return (yield from through(add_packed(deltas), step))
