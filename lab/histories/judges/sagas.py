"""The judge of sagas: what counts and is held, from the writes alone; and what callers are told.

Rule 1: money comes in before a history and never after it, so the sum of all that counts is known.
Judged is what stands in the table, at every write of a gate or a delta at its home: never more than
there was.
Rule 2: a transfer has one outcome, however often and by whomever it is asked for.
Rule 3: a call of holds that was refused holds nothing when its caller learns of that, unless a note
says so. Not judged is one that was tried before: a hold of which nobody had an answer may come
late.
Rule 4: in the end everything arrives and there is room; each transfer is finished once more, and
every wallet has what the outcomes say.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.histories.stage.judge import Judge
from lab.histories.stage.stage import finish
from lab.histories.stage.world import WatchedWorld
from ledger.client import programs
from ledger.client.preparing import Rules
from ledger.client.transfer import transfer
from ledger.core.errors import LimitReached
from ledger.core.items import delta_of
from ledger.core.requests import Item, Key
from ledger.core.values import Change, Delta, Lane
from ledger.gate import items
from ledger.gate.gate import Gate

TILL = "till"
WALLETS = ("wallet:a", "wallet:b", "wallet:c")
START = dict(zip((*WALLETS, TILL), (6, 3, 0, 5), strict=True))
ROOM = 10**6

Named = tuple[str, ...]
"""What a transfer is: its key, source and target."""


def named(of: Change) -> Named:
    assert of.then is not None
    return str(of.idempotency_key), of.counter, of.then.counter


@dataclass(frozen=True, slots=True)
class Finished:
    """A transfer that came to an end, as its caller was told."""

    of: Change
    outcome: str


@dataclass(frozen=True, slots=True)
class ByQueue:
    """A transfer that was added from the queue; moved: it was not refused."""

    of: Change
    moved: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A new call of holds was refused."""

    call: str
    deltas: Sequence[Delta]
    error: LimitReached


@dataclass
class SagaJudge(Judge):
    """rules: those of a process that begins in a Region."""

    world: WatchedWorld
    rules: Callable[[str], Rules]
    counts: Counter[str]
    gates: dict[Key, Gate] = field(default_factory=dict)
    deltas: dict[Key, Change] = field(default_factory=dict)
    asked: dict[Named, Change] = field(default_factory=dict)
    outcomes: dict[Named, str] = field(default_factory=dict)
    moves: dict[Named, bool] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    most: int = ROOM

    def at_write(self, region: str, key: Key, item: Item | None) -> None:
        kind, _, text = key.pk.partition("#")
        if kind == "gate" and item is not None:
            self.gates[key] = items.gate_of(Lane.parse(text), item)
        elif kind == "delta" and item is not None:
            self.deltas[key] = Change(
                Lane.parse(text).counter, delta_of(Lane.parse(text), item).change
            )
        if (total := sum(self.values().values())) > self.most:
            self.wrong.append(f"{total} counts, and there was never more than {self.most}")

    def at_answer(self, answer: object) -> None:
        match answer:
            case Finished(of, outcome):
                self.counts[outcome] += 1
                self._decided(of, moved=outcome == "moved")
                if (was := self.outcomes.setdefault(named(of), outcome)) != outcome:
                    self.wrong.append(f"{named(of)} was {was}, and now it is {outcome}")
            case ByQueue(of, moved):
                self._decided(of, moved=moved)
            case Refused(call, deltas, error):
                held = {delta.token for delta in deltas} & self._held()
                if held and not hasattr(error, "__notes__"):
                    self.wrong.append(f"{call} was refused, and something is held for it")

    def _decided(self, of: Change, *, moved: bool) -> None:
        if self.moves.setdefault(named(of), moved) != moved:
            self.wrong.append(f"{named(of)} has moved and has not")

    def at_end(self) -> None:
        """Each transfer without an outcome is finished; then each is finished once more."""
        world, regions = self.world, self.world.regions
        world.quiesce()
        for wallet in WALLETS:
            rules = self.rules(regions[0])
            finish(world, regions[0], programs.set_limit(rules, wallet, ceiling=ROOM))
        for asked in (
            [of for of in self.asked.values() if named(of) not in self.moves],
            [*self.asked.values()],
        ):
            for number, of in enumerate(asked):
                world.quiesce()
                region = regions[number % len(regions)]
                outcome = finish(world, region, transfer(self.rules(region), of)).outcome
                self.at_answer(Finished(of, outcome))
            due, values = self._due(), self.values()
            self.wrong += [
                f"{name} has {values[name]}, not {due[name]}"
                for name in START
                if values[name] != due[name]
            ]

    def values(self) -> Counter[str]:
        found = Counter({gate.lane.counter: 0 for gate in self.gates.values()})
        for gate in self.gates.values():
            found[gate.lane.counter] += gate.value
        for change in self.deltas.values():
            found[change.counter] += change.change
        return found

    def _held(self) -> set[str]:
        return {token for gate in self.gates.values() for token in gate.held}

    def _due(self) -> Counter[str]:
        """What each counter has once every transfer is decided."""
        values = Counter(START)
        for of in self.asked.values():
            if self.moves[named(of)]:
                assert of.then is not None
                values.update({of.counter: of.change, of.then.counter: of.then.change})
        return values
