"""Restores of limited counters: items of a history as of moments of it, the operator's rebuild, and
what must be then.

Rule 1: each item is that of its own moment, or all are of one; then perhaps a gate is deleted or
damaged. What was ever decided up to such a moment is known from the writes, not from what a gate
says that it counted.
Rule 2: after the rebuild the value is what any of the items knows: what a gate had decided, and
what is listed.
Rule 3: then a judge watches, as in any history: what is known is answered the same, and is not
decided again; no limit is passed, or passed further; everything is sold, and not one more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from compactor.gate_rebuild import Rebuilt, rebuild
from compactor.verify import verify_gates
from lab.histories.judges.gates import AtGates, GateJudge
from lab.histories.judges.gates_end import YEARS_MS, AskedAgain, sell_all
from lab.histories.stage.stage import finish, one_of
from lab.histories.stage.world import WatchedWorld
from ledger.core.errors import LedgerError
from ledger.core.limit import SIDES
from ledger.core.requests import Item, Key, Put
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.copies import read_copies
from ledger.gate.gate import Gate, change_of, counts
from ledger.gate.history import outcomes
from ledger.gate.move import free
from simulator.choices import Choices

RESTORES = 3
"""So many of a history that has some, each from the beginning."""

ONE_OF = 4
DAMAGES: tuple[Item, ...] = ({"low": {"N": "1"}}, {"recent": {"L": []}}, {"total": {"S": "7"}})


class Restores(AtGates):
    """Of one of four histories: restores of what it left when it was over. counts: what was
    restored.
    """

    def __init__(self, gates: GateJudge, choices: Choices, counts: Counter[str]) -> None:
        super().__init__(gates, choices)
        self.counts = counts
        self.over_ms = 0
        """When the history was over."""
        self.writes: list[tuple[int, Key, Item | None]] = []
        """At which step what was written, at home."""

    def at_write(self, region: str, key: Key, item: Item | None) -> None:
        if key.pk.startswith(("gate#", "past#", "hold#")):
            self.writes.append((self.gates.world.step, key, item))

    def at_end(self) -> None:
        if self.choices.pick(ONE_OF) != ONE_OF - 1:
            return
        try:
            wrong = next(filter(None, (self._restore() for _ in range(RESTORES))), [])
        except LedgerError as error:
            wrong = [f"{type(error).__name__}: {error}"]
        self.wrong.extend(f"restored: {each}" for each in wrong)

    def _restore(self) -> list[str]:
        was, choices = self.gates, self.choices
        old = was.world
        world = WatchedWorld(old.regions, choices, page_size=old.page_size, lag_steps=old.lag_steps)
        world.step_ms, world.now_ms = old.step_ms, self.over_ms
        known = {lane: Known(lane) for lane in was.lanes}
        for key, item in self._chosen(known).items():
            world.answer(Lane.parse(key.pk.partition("#")[2]).region, Put(item))
        world.quiesce()
        judge = GateJudge(
            world,
            was.lanes,
            was.limit,
            asked=was.asked,
            amounts=dict(was.amounts),
            parts=was.parts,
        )
        judge.wrong += self._check_lanes(judge, known, self._rebuild(judge))
        if judge.wrong:
            return judge.wrong
        world.watch = judge.at_write
        AskedAgain(judge, choices).at_end()
        if judge.wrong:
            return judge.wrong
        world.now_ms += YEARS_MS
        for side in SIDES:
            # what was owed is made up by now, or is not: the operator does it once more
            if any(judge.owed.values()):
                _free(judge)
                self._rebuild(judge)
                judge.wrong += self._check_rights(judge)
            sell_all(judge, choices, side)
        return judge.wrong

    def _chosen(self, known: dict[Lane, Known]) -> dict[Key, Item]:
        choices, step = self.choices, self.gates.world.step
        window = one_of(choices, (0, 30, 300, step))
        latest = step - choices.pick(step)
        versions: dict[Key, list[tuple[int, Item | None]]] = {}
        for at, key, item in self.writes:
            versions.setdefault(key, []).append((at, item))
        gone, damaged = (choices.pick(3 * len(known)) for _ in range(2))
        chosen: dict[Key, Item] = {}
        for key, written in versions.items():
            moment = latest - choices.pick(window + 1)
            until = [item for at, item in written if at <= moment]
            item = until[-1] if until else None
            if item is None:
                continue
            of = known[Lane.parse(key.pk.partition("#")[2])]
            number = list(known).index(of.lane)
            if key == items.gate_key(of.lane):
                if number == gone:
                    continue
                if number == damaged:
                    chosen[key] = {**item, **one_of(choices, DAMAGES)}
                    continue
                of.had = {
                    t: n
                    for each in until
                    if each
                    for t, n in items.gate_of(of.lane, each).recent.items()
                }
            of.learn(key, item)
            chosen[key] = item
        return chosen

    def _rebuild(self, judge: GateJudge) -> list[Rebuilt]:
        region = one_of(self.choices, judge.world.regions)
        rebuilt = finish(judge.world, region, rebuild(judge.gates_in(region)))
        judge.world.quiesce()
        return rebuilt

    def _check_lanes(
        self, judge: GateJudge, known: dict[Lane, Known], rebuilt: Iterable[Rebuilt]
    ) -> list[str]:
        """What the gates say after a rebuild; the judge learns it."""
        world, region = judge.world, judge.world.regions[0]
        checks = finish(world, region, verify_gates(judge.gates_in(region)))
        wrong: list[str] = [each for check in checks for each in check.differences]
        for each in rebuilt:
            lane = each.gate.lane
            of, lost = known[lane], known[lane].lost
            listed = finish(world, lane.region, outcomes(lane, consistent=True))
            if {token: listed.get(token) for token in of.decided} != of.decided:
                wrong.append(f"{lane}: its history is not what its items know")
            added = [outcome for token, outcome in listed.items() if token not in of.decided]
            if sum(added) != sum(lost) or (each.lost, each.lost_sum) != (len(lost), sum(lost)):
                wrong.append(
                    f"{lane}: {lost} were lost; {added} were added, {each.lost} of {each.lost_sum} "
                    "are told"
                )
            self.counts.update({"tokens lost": len(lost), "gates gone": int(each.was is None)})
            judge.gates[lane] = items.gate_of(
                lane, world.replicas[lane.region].item(items.gate_key(lane)) or {}
            )
            judge.decided |= {(lane, token): outcome for token, outcome in listed.items()}
            judge.open |= {(lane, token): amount for token, amount in of.open.items()}
        judge.granted |= dict.fromkeys(judge.open, 0)
        (seen,) = finish(world, region, read_copies([judge.gates_in(region)], consistent=True))
        expected = sum(
            sum(map(change_of, of.decided.values())) + sum(of.lost) for of in known.values()
        )
        number = sum(map(counts, judge.decided.values()))
        if (seen.value, seen.count) != (expected, number):
            wrong.append(
                f"the value is {seen.value} of {seen.count}, and should be {expected} of {number}"
            )
        return [*wrong, *self._check_rights(judge)]

    def _check_rights(self, judge: GateJudge) -> list[str]:
        """All that is left is there as rights; or nobody has any, and so much is owed: the judge
        learns it.
        """
        wrong: list[str] = []
        for side in filter(judge.limit.has, SIDES):
            left = judge.left()[side]
            rights = [gate.rights[side] for gate in judge.gates.values()]
            if sum(rights) != left or (min(rights) < 0 < max(rights)):
                wrong.append(f"{left} {side} is left, and the rights are {rights}")
            judge.owed[side] = max(0, -left)
            self.counts["restored" if left >= 0 else "restored beyond"] += 1
        return wrong


@dataclass(slots=True)
class Known:
    """What the restored items of a lane know.

    had: all that the gate had decided, ever; empty, if it cannot be read.
    """

    lane: Lane
    gate: Gate | None = None
    had: dict[str, int] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def decided(self) -> dict[str, int]:
        """Every token of which the outcome can be told."""
        return {**(self.gate.recent if self.gate else {}), **self.listed}

    @property
    def open(self) -> dict[str, int]:
        held = {**self.notes, **(self.gate.held if self.gate else {})}
        return {token: amount for token, amount in held.items() if token not in self.decided}

    def learn(self, key: Key, item: Item) -> None:
        if key == items.gate_key(self.lane):
            self.gate = items.gate_of(self.lane, item)
        elif key.pk.startswith("hold#"):
            token, amount = items.hold_of(self.lane, item)
            self.notes[token] = amount
        elif key.sk.startswith(items.SEGMENTS_FROM):
            self.listed |= items.filed_of(self.lane, item).outcomes
        else:
            token, outcome, _ = items.late_of(self.lane, item)
            self.listed[token] = outcome

    @property
    def lost(self) -> list[int]:
        """The changes that the gate counted, and of which nobody knows the token any more."""
        known = self.decided
        return [
            outcome for token, outcome in self.had.items() if counts(outcome) and token not in known
        ]


def _free(judge: GateJudge) -> None:
    for lane, gate in list(judge.gates.items()):
        finish(judge.world, lane.region, free(judge.gates_in(lane.region), gate))
