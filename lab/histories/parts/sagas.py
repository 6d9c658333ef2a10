"""Histories of sagas: transfers between limited wallets and a till without a limit, and holds in
several wallets.

Rule 1: a transfer is finished by whoever comes by: its caller after a crash, another process, from
another Region, and the queue, which adds it in rounds among others.
Rule 2: one key stands for several transfers, each between two other counters, with an outcome of
its own; and somebody adds under the names of their steps as keys of his own, which are no steps.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any

from lab.histories.judges.last_words import Failed, Heard, LastWords
from lab.histories.judges.sagas import (
    START,
    TILL,
    WALLETS,
    ByQueue,
    Finished,
    Refused,
    SagaJudge,
    named,
)
from lab.histories.judges.shared_holds import SharedHolds
from lab.histories.parts.queue import Programs
from lab.histories.parts.shared_holds import Sharers
from lab.histories.stage.filing import Filing, file_as, filed_as
from lab.histories.stage.stage import (
    BEGAN_MS,
    LONG,
    PACE,
    SHORT,
    Played,
    Stage,
    finish,
    one_of,
    rest,
    watched,
)
from lab.histories.stage.world import WatchedWorld
from ledger.client import preparing, programs
from ledger.client import saga_steps as steps
from ledger.client.hold_all import hold_all, prepare
from ledger.client.holds import Hold
from ledger.client.preparing import Rules
from ledger.client.saga_steps import transfer_of
from ledger.client.transfer import transfer
from ledger.core.checks import to_datetime
from ledger.core.errors import LedgerError, LimitReached, TransferStuck
from ledger.core.limit import Limit
from ledger.core.running import through
from ledger.core.settings import Settings
from ledger.core.values import Change, Receipt
from service.add_from_queue.rounds import rounds
from simulator.choices import Choices
from simulator.faults import Faults
from simulator.process import Log, Move, Script

CEILING = 7
TRIES = 12


@dataclass
class Bank:
    """What the processes of a history share."""

    stage: Stage
    regions: tuple[str, ...]
    judge: SagaJudge = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.stage.world, WatchedWorld)
        self.judge = SagaJudge(self.stage.world, self.rules, self.stage.counts)
        words = LastWords(self.judge.gates, self.judge.wrong)
        self.stage.judged_by(self.judge, words, SharedHolds())

    @property
    def counts(self) -> Counter[str]:
        return self.stage.counts

    @property
    def choices(self) -> Choices:
        return self.stage.world.choices

    def pick(self, options: int) -> int:
        return self.choices.pick(options)

    def rules(self, region: str) -> Rules:
        """Those of a process that begins."""
        limits = {"wallet:": Limit(floor=0, ceiling=CEILING, region=self.regions[0])}
        settings = Settings(
            table="counters",
            region=region,
            regions=self.regions,
            limits=limits,
            unshared_limits=True,
        )
        return Rules(
            settings,
            lambda: self.stage.world.now_ms,
            lambda size: bytes(self.pick(256) for _ in range(size)),
        )

    def enter_all(self) -> None:
        for number in range(3 + self.pick(6)):
            region, pace = one_of(self.choices, self.regions), one_of(self.choices, PACE)
            mine: list[Change] = []
            enters = partial(self._moves, f"m{number}", region, mine, pace)
            self.stage.enter(f"caller {number}", region, enters)
        for number in range(self.pick(3)):
            region = one_of(self.choices, self.regions)
            self.stage.enter(
                f"queue {number}", region, partial(self._queue, f"q{number}", region, [])
            )
        sharers = Sharers(self.stage, self.rules, WALLETS)
        for number in range(self.pick(4)):
            region = one_of(self.choices, self.regions)
            self.stage.enter(
                f"sharer {number}", region, partial(sharers.play, f"s{number}", region)
            )
        for number in range(self.pick(4)):
            region = one_of(self.choices, self.regions)
            self.stage.enter(
                f"holder {number}", region, partial(self._holds, f"h{number}", region, count())
            )

    def _moves(self, name: str, region: str, mine: list[Change], pace: tuple[int, ...]) -> Script:
        yield rest(self.choices, pace)
        rules = {each: self.rules(each) for each in self.regions}
        for n in range(1 + self.pick(4)):
            if n == len(mine):
                mine.append(self._asks(f"{name}/{n}", region))
            yield from self._finish(mine[n], region, rules)
            if self.pick(4) == 3:
                yield from self._finish(
                    one_of(self.choices, [*self.judge.asked.values()]), region, rules
                )
            if self.pick(8) == 7:
                yield from self._adds_under_its_names(mine[n], region, rules[region])

    def _asks(self, key: str, region: str) -> Change:
        """A new transfer, or one that was asked for.

        Of three some have one key, amount, time and Region.
        """
        source = one_of(self.choices, (*WALLETS, *WALLETS, TILL))
        target = one_of(self.choices, [each for each in START if each != source])
        amount, at = 1 + self.pick(4), to_datetime(self.stage.world.now_ms - self.pick(1_000))
        if self.pick(3) == 0:
            key, amount, at, region = "shared", 3, to_datetime(BEGAN_MS), self.regions[0]
        of = transfer_of(source, target, amount, key, at, region)
        return self.judge.asked.setdefault(named(of), of)

    def _adds_under_its_names(self, of: Change, region: str, rules: Rules) -> Script:
        """Nothing, so that it counts however late it comes, by keys that read like the names of
        its steps.
        """
        key = str(of.idempotency_key)
        for step in (steps.debit(of), steps.credit(of, region), steps.refund(of, region, 0)):
            for text in (str(step.idempotency_key), f"{key}/from", f"{key}/to", f"{key}/back"):
                change = Change(step.counter, 0, text, of.at, of.region)
                with suppress(LedgerError):
                    yield from programs.add(rules, preparing.prepare(rules, change))

    def _queue(self, name: str, region: str, mine: list[Change]) -> Script:
        """A batch of messages, again and again, until each is decided; others may have asked for
        some of them.
        """
        yield rest(self.choices, LONG)
        while len(mine) < 1 + self.pick(4):
            known = [*self.judge.asked.values()]
            mine.append(
                one_of(self.choices, known)
                if known and self.pick(2)
                else self._asks(f"{name}/{len(mine)}", region)
            )
        ledger, batch = Programs(self.rules(region)), [*mine]
        for _ in range(TRIES):
            outcomes = yield from through(
                rounds(ledger.settings, batch, pack=not self.pick(2)), lambda call: call(ledger)
            )
            for of, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, Receipt | LimitReached):
                    self.counts["by queue"] += 1
                    self.stage.answered(ByQueue(of, isinstance(outcome, Receipt)))
            batch = [of for of in batch if named(of) not in self.judge.moves]
            if not batch:
                break
            yield rest(self.choices, SHORT)

    def _finish(self, of: Change, region: str, rules: dict[str, Rules]) -> Script:
        """Until it has an answer, from wherever it is asked."""
        here = region
        for _ in range(TRIES):
            heard = Heard(several=True)
            try:
                outcome = (yield from heard.of(transfer(rules[here], of))).outcome
                self.stage.answered(Finished(of, outcome))
                break
            except LedgerError as error:
                self.stage.answered(Failed(heard, error))
                self.counts["stuck"] += isinstance(error, TransferStuck)
                if self.pick(3) == 2:
                    here = one_of(self.choices, self.regions)
                    yield Move(here)
            yield rest(self.choices, SHORT)
        yield Move(region)

    def _holds(self, name: str, region: str, numbers: "count[int]") -> Script:
        rules = self.rules(region)
        for _ in range(1 + self.pick(6)):
            yield rest(self.choices, LONG)
            number, at = next(numbers), to_datetime(self.stage.world.now_ms)
            named: dict[str, Any] = (
                {"idempotency_key": f"{name}/{number}", "at": at} if self.pick(2) else {}
            )
            wallets = WALLETS[self.pick(2) :] if self.pick(2) else WALLETS[::-1]
            length = timedelta(
                milliseconds=one_of(self.choices, (300, 10**6)) * self.stage.world.step_ms
            )
            asked = prepare(
                rules, wallets, one_of(self.choices, (-2, -1, 1, 2, 3)), length, **named
            )
            heard = Heard(several=True)
            try:
                yield from heard.of(hold_all(rules, asked))
            except LimitReached as refused:
                self.counts["refused holds"] += 1
                self.stage.answered(Refused(f"{name}/{number}", asked.deltas, refused))
                continue
            except LedgerError as error:
                self.stage.answered(Failed(heard, error))
                continue
            self.counts["held"] += 1
            yield rest(self.choices, SHORT)
            for delta in asked.deltas:
                with suppress(LedgerError):
                    yield from programs.release(rules, Hold(delta))


@filed_as()
def play(choices: Choices, faults: Faults | None = None, log: Log | None = None) -> Played:
    world, faults = watched(choices, faults, (1, 10, 40))
    regions = world.regions
    file_as(
        Filing(
            1,
            enough := one_of(choices, (4, 7, 19)),
            holds_beside=enough - choices.pick(2),
            slack_ms=100 * world.step_ms,
        )
    )
    bank = Bank(Stage(world, faults, log), regions)
    rules = bank.rules(regions[0])
    for counter, amount in START.items():
        finish(
            world,
            regions[0],
            programs.add(rules, preparing.prepare(rules, Change(counter, amount))),
        )
    world.quiesce()
    bank.judge.most = sum(START.values())
    bank.enter_all()
    bank.stage.play()
    return bank.stage.ended()
