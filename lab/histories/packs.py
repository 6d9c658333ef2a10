"""The writer of packs in a history: changes of its own and of others, in one company and then in another.

Rule 1: What was not acknowledged is sent again, with whatever else is at hand, so a token stands in several packs and
alone.
Rule 2: The packs of a batch are put one by one, so that it may end between two of them.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from lab.histories.cast import NUMBERS_MAX, SENDS_MAX, Sender, writes
from lab.histories.checker import Asked, Record
from lab.histories.theatre import LONG, SHORT, one_of, rest
from ledger.errors import LedgerError
from ledger.lane.add import add_packed
from ledger.lane.tail import through
from ledger.requests import Now, Put, Request, Together
from ledger.values import Receipt
from simulator.process import Move, Script, Sleep

PACKED_MAX = 5
RESERVED = 4


def enter_producer(sender: Sender, packs: bool, pace: Callable[[], Sequence[int]]) -> None:
    """A writer; or a packer, in some histories with packs."""
    cast = sender.cast
    if packs and cast.choices.pick(2):
        numbers = cast.numbers(2 + cast.choices.pick(PACKED_MAX - 1))
        script = partial(sends_packs, numbers, sender, pace(), [])
        cast.theatre.enter(f"packer {numbers.start}", sender.home, script)
    else:
        (number,) = cast.numbers(1)
        cast.theatre.enter(f"writer {number}", sender.home, partial(writes, number, sender, pace(), []))


def sends_packs(numbers: range, sender: Sender, pace: Sequence[int], mine: list[Asked]) -> Script:
    """Asks for the changes `numbers` and sends them in packs until each is acknowledged; then perhaps again.

    mine: outlives a crash, as messages in a queue do.
    """
    choices, record = sender.cast.choices, sender.cast.record
    yield rest(choices, pace)
    while len(mine) < len(numbers):
        mine.append(sender.ask(numbers[len(mine)], (yield Now()).wall_ms))
        if len(mine) == len(numbers) and record.numbers < NUMBERS_MAX - RESERVED and choices.pick(12) == 11:
            mine.append(sender.rival(mine[-1]))  # before anybody else can have sent it
    region, batch = sender.home, list(mine)
    for _ in range(SENDS_MAX):
        others = [one_of(choices, record.asked) for _ in range(choices.pick(4))]
        sent = batch + others
        outcomes = yield from _one_by_one(add_packed([asked.delta for asked in sent]), record)
        for asked, outcome in zip(sent, outcomes, strict=True):
            if isinstance(outcome, Receipt):
                sender.acknowledged(asked, region)
        batch = [a for a, outcome in zip(batch, outcomes, strict=False) if isinstance(outcome, LedgerError)]
        if batch:
            yield rest(choices, SHORT)
        else:
            if choices.pick(3) != 2:
                return
            yield rest(choices, LONG)  # a redelivery, often after what was sent was cleaned
            batch = [asked for asked in mine if choices.pick(2)] or mine[:1]
        if choices.pick(3) == 2:
            region = sender.cast.any_region()  # a fail-over
            yield Move(region)


def _one_by_one(program: Generator[Any, Any, Any], record: Record) -> Generator[Request | Sleep, Any, Any]:
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

    return through(program, step)
