"""The judge of limited counters: what the gates really hold, from their writes alone.

Rule 1: it sees each write of a gate at its home, before any replication, and knows nothing of how a
gate works but its
attributes: a token is decided once, for ever; no limit is passed, holds counted, at any write;
rights are neither lost nor made; a hold is always somewhere; a refusal is only written where there
is too little.
Rule 2: an answer is what was decided, and a refusal had a moment during its call, or one that its
process remembers, in which there was too little; or lanes had, each at a moment of its own. A part
of a change is what they had then.
Rule 3: what was added before there was a limit counts against it too. Where it had arrived, nobody
opens the first gate of all that are seen there, nor the one with the first rights.
Rule 4: a history is all that was decided up to some moment; of what counts nothing, a copy may lack
some.
"""

from dataclasses import dataclass, field

from lab.histories.judges.answers import Asked, Conflicted, Decided, Listed, Stood
from lab.histories.stage.judge import Judge
from lab.histories.stage.world import WatchedWorld
from ledger.core import tokens
from ledger.core.items import delta_of
from ledger.core.limit import DOWN, SIDES, UP, Limit
from ledger.core.requests import Item, Key
from ledger.core.tokens import until_ms
from ledger.core.values import Delta, Lane
from ledger.gate import items
from ledger.gate.gate import REFUSED, Gate, change_of, counts
from ledger.gate.gates import Gates
from ledger.gate.sold_out import SoldOut
from simulator.choices import Choices

COUNTER = "g"


@dataclass(frozen=True, slots=True)
class Moment:
    """What each lane owned of each side from some step on.

    over: (since when, how much) of the holds that are over.
    """

    step: int
    own: dict[tuple[Lane, str], int]
    over: tuple[tuple[int, int], ...] = ()

    def least(self, amount: int, since: int) -> int:
        """What can be taken; a hold that is over is free for who began after it was granted."""
        free = sum(abs(n) for granted, n in self.over if granted < since and n * amount > 0)
        return free + sum(own for (_, side), own in self.own.items() if side == side_of(amount))


@dataclass
class GateJudge(Judge):
    world: WatchedWorld
    lanes: tuple[Lane, ...]
    limit: Limit
    asked: list[Asked] = field(default_factory=list)
    amounts: dict[tuple[Lane, str], int] = field(default_factory=dict)
    parts: set[tuple[Lane, str]] = field(default_factory=set)
    """The changes of which a part may count."""
    before: dict[tuple[Lane, str], int] = field(default_factory=dict)
    """How many moments there were before each of these was decided."""
    gates: dict[Lane, Gate] = field(default_factory=dict)
    decided: dict[tuple[Lane, str], int] = field(default_factory=dict)
    open: dict[tuple[Lane, str], int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    granted: dict[tuple[Lane, str], int] = field(default_factory=dict)
    """At which step each hold that is open was granted."""
    by_name: dict[tuple[Lane, bytes], str] = field(default_factory=dict)
    """The hold that was granted of all that differ in their length alone."""
    moments: list[Moment] = field(default_factory=list)
    beside: dict[Key, int] = field(default_factory=dict)
    """The changes that no gate decided."""
    arrived: set[str] = field(default_factory=set)
    """The Regions where they had arrived when the limit was given."""
    owed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    """How far beyond its limit the value may be, by side: because of a restore alone."""

    def __post_init__(self) -> None:
        self.moments.append(self._moment(0))

    def gates_in(self, region: str, sold_out: SoldOut | None = None) -> Gates:
        """The gates as a process in that Region reaches them, which may remember something."""
        own = [lane for lane in self.lanes if lane.region == region]
        lanes = (*own, *(each for each in self.lanes if each not in own))
        return Gates(lanes, self.limit, region, sold_out or SoldOut())

    def delta(self, token: str, region: str, change: int) -> Delta:
        """In the lane of that Region that the token falls to; of all, where it has none."""
        own = [lane for lane in self.lanes if lane.region == region] or self.lanes
        return Delta(own[tokens.draw(token, len(own))], token, change)

    def ask(
        self, delta: Delta, *, is_hold: bool = False, is_named: bool = False, up_to: bool = False
    ) -> Asked:
        self.asked.append(Asked(delta, is_hold, is_named=is_named, up_to=up_to))
        if up_to:
            self.parts.add((delta.lane, delta.token))
        self.amounts[delta.lane, delta.token] = delta.change
        if is_named:
            self.amounts[delta.lane, tokens.name_of(delta.token)] = delta.change
        return self.asked[-1]

    def at_write(self, region: str, key: Key, item: Item | None) -> None:
        kind, _, text = key.pk.partition("#")
        if kind == "delta" and item is not None:
            self.beside[key] = delta_of(Lane.parse(text), item).change
        if kind not in ("gate", "past", "hold"):
            return
        lane = Lane.parse(text)
        if region != lane.region:
            self.wrong.append(f"{key} is written in {region}")
        if kind == "gate":
            if item is None:
                self.wrong.append(f"{key} is deleted")
                return
            after = items.gate_of(lane, item)
            if lane not in self.gates:
                self._opens(lane)
            self._compare(lane, self.gates.get(lane), after)
            self.gates[lane] = after
            self._limits(lane)

    def _opens(self, lane: Lane) -> None:
        copies = [
            self.world.replicas[lane.region].item(items.gate_key(each))
            for each in self.lanes
            if each != lane
        ]
        if lane.region in self.arrived and (
            self.limit.opens(lane.region, lane.shard) or not any(copies)
        ):
            self.wrong.append(f"{lane}: a gate is opened beside changes that no gate decided")

    def _compare(self, lane: Lane, before: Gate | None, after: Gate) -> None:
        was, held = (before.recent, before.held) if before else ({}, {})
        for token, outcome in after.recent.items():
            if token in was:
                if was[token] != outcome:
                    self.wrong.append(f"the outcome of {token} changes")
                continue
            if (lane, token) in self.decided:
                self.wrong.append(
                    f"{token} is decided twice: {self.decided[lane, token]}, {outcome}"
                )
            if (
                (lane, token) in self.open
                and token not in held
                and self._noted(lane, token) is None
            ):
                self.wrong.append(f"{token} ends and was nowhere")
            amount = self.amounts[lane, token]
            least = 1 if (lane, token) in self.parts else abs(amount)
            if outcome == REFUSED and after.rights[side_of(amount)] >= least:
                self.wrong.append(f"{token} of {amount} is refused where there is enough")
            self.decided[lane, token] = outcome
            if (lane, token) in self.parts:
                self.before[lane, token] = len(self.moments)
            self.open.pop((lane, token), None)
        for token, amount in after.held.items():
            if token not in held:
                if (lane, token) in self.decided or (lane, token) in self.open:
                    self.wrong.append(f"the hold {token} is granted twice")
                if (
                    twin := self.by_name.setdefault((lane, tokens.to_bytes(token)[:14]), token)
                ) != token:
                    self.wrong.append(
                        f"the hold {token} is granted with another length, too: {twin}"
                    )
                self.open[lane, token] = amount
                self.granted[lane, token] = self.world.step
        for token in held:
            left = (
                token not in after.held and token not in after.recent and (lane, token) in self.open
            )
            if left and self._noted(lane, token) is None:
                self.wrong.append(f"the hold {token} is lost")

    def _noted(self, lane: Lane, token: str) -> Item | None:
        return self.world.replicas[lane.region].item(items.hold_key(lane, token))

    def _limits(self, lane: Lane) -> None:
        left, more = self.left(), sum(self.beside.values())
        moment = self._moment(self.world.step)
        for side in filter(self.limit.has, SIDES):
            if left[side] + (more if side == DOWN else -more) < -self.owed[side]:
                self.wrong.append(
                    f"{left[side]} is left {side}, and {more} was added beside: outside "
                    f"{self.bounds}"
                )
            own = sum(moment.own[each, side] for each in self.lanes)
            if own != left[side]:
                self.wrong.append(f"{lane}: rights {side} are {own}, and should be {left[side]}")
            if any(gate.rights[side] < -self.owed[side] for gate in self.gates.values()):
                self.wrong.append(f"{lane}: rights {side} below zero")
        self.moments.append(moment)

    def left(self) -> dict[str, int]:
        value, held = sum(map(change_of, self.decided.values())), self.open.values()
        floor, ceiling = self.bounds
        down, up = sum(n for n in held if n < 0), sum(n for n in held if n > 0)
        return {DOWN: value + down - (floor or 0), UP: (ceiling or 0) - value - up}

    def _moment(self, step: int) -> Moment:
        own = {(lane, side): self._own(lane, side) for lane in self.lanes for side in SIDES}
        over = (
            (self.granted[key], n)
            for key, n in self.open.items()
            if until_ms(key[1]) <= self.world.now_ms
        )
        return Moment(step, own, tuple(over))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        for lane, gate in self.gates.items():
            if self.limit.opens(lane.region, lane.shard):
                return gate.bounds[DOWN], gate.bounds[UP]
        return self.limit.floor, self.limit.ceiling

    def _own(self, lane: Lane, side: str) -> int:
        if lane in self.gates:
            return self.gates[lane].own(side)
        return self.limit.opening(side) if self.limit.opens(lane.region, lane.shard) else 0

    def at_answer(self, answer: object) -> None:
        match answer:
            case Decided():
                self._decided(answer)
            case Conflicted(one, counts):
                if one.may_count(counts):
                    self.wrong.append(f"{one.delta.token} conflicts with {counts}, a part of it")
            case Listed():
                self._listed(answer)
            case Stood(region, seen, limit):
                low, high = limit.floor, limit.ceiling
                is_outside = (low is not None and seen.value < low) or (
                    high is not None and seen.value > high
                )
                if is_outside and seen.is_closed:
                    self.wrong.append(f"a closed read in {region} is {seen.value}, outside {limit}")

    def _decided(self, answer: Decided) -> None:
        one, decision, since = answer.one, answer.decision, answer.since
        token, amount = one.delta.token, one.delta.change
        if decision.held is not None:
            if decision.held != amount:
                self.wrong.append(f"{token} is said to hold {decision.held}")
            return
        one.outcome = decision.outcome
        if (truth := self.decided.get((one.delta.lane, token))) != decision.outcome:
            self.wrong.append(f"{token} is said to be {decision.outcome}, and is {truth}")
        if answer.how is not None and not decision.before and decision.outcome != answer.how:
            self.wrong.append(f"{token} ended with {decision.outcome}, not {answer.how}")
        if decision.outcome == REFUSED:
            least = min(self.least(one.least, since), self.least_in_parts(one.least, since))
            if not decision.before and least >= abs(one.least):
                self.wrong.append(f"{token} of {amount} was refused, and there always was enough")
        elif not one.is_hold and not one.may_count(decision.outcome):
            self.wrong.append(f"{token} of {amount} is said to count {decision.outcome}")
        elif one.up_to and not decision.before and decision.outcome != amount:
            had = self.had(one.delta, since)
            if abs(decision.outcome or 0) not in had:
                self.wrong.append(
                    f"{decision.outcome} of {amount} counts, and lanes never had that"
                )

    def _listed(self, answer: Listed) -> None:
        lane, listed, whole = answer.lane, answer.outcomes, answer.whole
        truth = [
            token
            for of, token in self.decided
            if of == lane and (whole or counts(self.decided[of, token]))
        ]
        there = {token for token in listed if whole or counts(listed[token])}
        if there != set(truth[: len(there)]):
            self.wrong.append(f"a history of {lane} was never all that it decided")
        for token, outcome in listed.items():
            if self.decided.get((lane, token)) != outcome:
                self.wrong.append(f"a history of {lane} lists {token} as {outcome}")

    def known(self) -> object:
        amounts = sorted({one.delta.change for one in self.asked})
        least = [(self.least(each, 1), self.least_in_parts(each, 1)) for each in amounts]
        had = [sorted(self.had(one.delta, 1)) for one in self.asked if one.up_to]
        return self.wrong, list(self.decided.items()), sorted(self.open.items()), least, had

    def _moments(self, since: int, until: int | None = None) -> list[Moment]:
        """Those since that step, and the one before; of the first so many."""
        known = self.moments[:until]
        before = [each for each in known if each.step < since]
        return [*before[-1:], *(each for each in known if each.step >= since)]

    def least(self, amount: int, since: int) -> int:
        return min(moment.least(amount, since) for moment in self._moments(since))

    def least_in_parts(self, amount: int, since: int) -> int:
        """The least that the lanes had, each at its own moment since that step: rights grew in one
        while they were taken in another."""
        side = side_of(amount)
        return sum(
            min(moment.own[lane, side] for moment in self._moments(since)) for lane in self.lanes
        )

    def had(self, delta: Delta, since: int) -> set[int]:
        """What lanes had together, each at a moment of its own since that step, and before the
        change was decided.
        """
        moments = self._moments(since, self.before.get((delta.lane, delta.token)))
        side, sums = side_of(delta.change), {0}
        for lane in self.lanes:
            own = {moment.own[lane, side] for moment in moments}
            sums = {before + more for before in sums for more in own}
        return sums


def side_of(amount: int) -> str:
    return DOWN if amount < 0 else UP


class AtGates(Judge):
    """A judge that goes on with what another one saw."""

    def __init__(self, gates: GateJudge, choices: Choices) -> None:
        self.gates, self.choices, self.wrong = gates, choices, gates.wrong
