"""The judges of the end of limited counters, after a long history and after a small cast.

Rule 1: everything arrives; then each is asked again and answered the same, and the books are in
order.
Rule 2: everything is sold from any Region, and not one more.
"""

from compactor.verify import verify_gates
from lab.histories.judges.gates import AtGates, GateJudge
from lab.histories.stage.stage import finish, one_of
from ledger.client import named_holds as named
from ledger.core import tokens
from ledger.core.limit import DOWN, SIDES
from ledger.gate.decide import decide_change
from ledger.gate.gate import change_of
from ledger.gate.history import outcomes
from simulator.choices import Choices

SALES_MAX = 2_000
YEARS_MS = 500 * 86_400_000
"""By then every hold is over."""


class AskedAgain(AtGates):
    def at_end(self) -> None:
        judge = self.gates
        world, regions = judge.world, judge.world.regions
        world.quiesce()
        before = dict(judge.decided)
        for n, one in enumerate(judge.asked):
            region = regions[n % len(regions)]
            lane, token = one.delta.lane, one.delta.token
            name = tokens.name_of(token) if one.is_named else None
            gates = judge.gates_in(region)
            program = decide_change(gates, one.delta, hold=one.is_hold, name=name, up_to=one.up_to)
            decision = finish(world, region, program)
            if name is not None:
                granted, _ = finish(world, region, named.close(judge.gates_in(region), one.delta))
                if judge.by_name.get((lane, tokens.to_bytes(token)[:14]), token) != granted.token:
                    judge.wrong.append(f"{name} is said to stand for {granted.token}")
            was = before.get((lane, name or token))
            if was is not None and (decision.outcome, decision.held) != (was, None):
                judge.wrong.append(f"{token} was {was}, and asked again it is {decision}")
        for lane in judge.lanes:
            world.quiesce()
            listed = finish(world, lane.region, outcomes(lane, consistent=True))
            truth = {token: outcome for (of, token), outcome in judge.decided.items() if of == lane}
            if listed != truth:
                judge.wrong.append(f"the history of {lane} differs from what was decided")
        for check in finish(world, regions[0], verify_gates(judge.gates_in(regions[0]))):
            judge.wrong += check.differences


class AllSold(AtGates):
    def at_end(self) -> None:
        self.gates.world.now_ms += YEARS_MS
        for side in SIDES:
            sell_all(self.gates, self.choices, side)


class AllTaken(AtGates):
    def at_end(self) -> None:
        self.gates.world.now_ms += YEARS_MS
        for side in SIDES:
            sell_all(self.gates, self.choices, side, up_to=(1, 5, 10**6))


def sell_all(judge: GateJudge, choices: Choices, side: str, *, up_to: tuple[int, ...] = ()) -> None:
    """What is left of a side is taken, one by one, or up to so many at once: a part is all the
    rest. None is taken where the value is beyond its limit.
    """
    if not judge.limit.has(side):
        return
    world, one = judge.world, -1 if side == DOWN else 1
    first = sum(map(change_of, judge.decided.values()))
    for n in range(SALES_MAX):
        region = one_of(choices, world.regions)
        amount = one * (one_of(choices, up_to) if up_to else 1)
        delta = judge.delta(
            tokens.keyed(judge.lanes[0].counter, f"end {one} {n}", world.now_ms), region, amount
        )
        judge.amounts[delta.lane, delta.token] = amount
        if up_to:
            judge.parts.add((delta.lane, delta.token))
        program = decide_change(judge.gates_in(region), delta, up_to=bool(up_to))
        decision = finish(world, region, program)
        world.now_ms += 20
        if choices.pick(2):
            world.quiesce()
        if decision.outcome != amount:
            break
    value = sum(map(change_of, judge.decided.values()))
    bound = judge.bounds[one > 0] or 0
    if value != (first if one * first > one * bound else bound):
        left = [n for n in judge.open.values() if n * one > 0]
        judge.wrong.append(
            f"at rest {value} is left, not {bound}: not all could be taken (open: {left})"
        )
