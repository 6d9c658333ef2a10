"""Where a small cast of a limited counter plays: gates that decided a little, and programs of
ledger/gate let loose.

A step names a change or a hold by its key; it is asked for once, by the step that names it first.

Rule 1: every write, every answer and the end are judged as those of the long histories:
judges/gates.py.
Rule 2: all calls begin at once and take their time, so a refusal may stand for any moment since.
Rule 3: nothing goes wrong on the way, so no call may fail.
"""

from contextlib import suppress

from compactor.gate_rebuild import rebuild
from lab.histories.casts.part import AWAY, HOME, Part, process
from lab.histories.judges.answers import Asked, Decided, Listed
from lab.histories.judges.gates import COUNTER, GateJudge
from lab.histories.judges.gates_end import AllSold, AskedAgain
from lab.histories.stage.filing import Filing, file_as
from lab.histories.stage.stage import finish
from lab.histories.stage.world import WatchedWorld
from ledger.client import named_holds as named
from ledger.core import tokens
from ledger.core.errors import HoldEnded, LedgerError, LimitMismatch, LimitReached, NotYetReplicated
from ledger.core.items import delta_item
from ledger.core.limit import UP, Limit
from ledger.core.requests import DeleteMany, Instant, Key, Program, Put, PutMany, Together
from ledger.core.tokens import hold_token
from ledger.core.values import Delta, Lane
from ledger.gate import items
from ledger.gate.answer import Decision
from ledger.gate.decide import add_group, decide_change
from ledger.gate.filing import roll
from ledger.gate.gate import CLOSED, REFUSED
from ledger.gate.history import outcomes, past_in
from ledger.gate.holds import end
from ledger.gate.left import Left
from ledger.gate.move import free
from ledger.gate.set_limit import set_limit
from ledger.gate.sold_out import SoldOut
from simulator.choices import Drawn
from simulator.process import Log

LANE, LANE_AWAY = Lane(HOME, 0, COUNTER), Lane(AWAY, 0, COUNTER)
LANE_BESIDE = Lane(HOME, 1, COUNTER)
NEVER = Filing(
    unit_bytes=1, enough=1_000, beside=1_000, draw=1, holds_beside=1_000, holds_left=0, slack_ms=0
)
"""Nobody begins a roll but who is told to; then all is filed that can be."""
AT_ONCE = Filing(unit_bytes=1, enough=1, beside=0, draw=1, holds_beside=1, holds_left=0, slack_ms=0)
"""Whoever decides something files all that can be."""


class GateSteps(Part):
    kind = WatchedWorld
    one_by_one = (DeleteMany, PutMany, Together)
    world: WatchedWorld
    copies_stay = False
    """Whether no gate arrives in another Region, for a cast that has enough to go through
    without.
    """

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        self.named: dict[str, Asked] = {}
        self.limited()

    def may_fail(self, error: LedgerError) -> bool:
        return bool(self.judge.beside) and isinstance(error, LimitMismatch)

    def judged(self) -> list[str]:
        return self.judge.wrong if self.judge.beside else super().judged()

    def arrivals(self) -> list[tuple[str, Key]]:
        """Gates alone are asked for where they are not written; what was filed, by who reads a
        history elsewhere.
        """
        if self.copies_stay or all(process.done for process in self.processes):
            return []
        gates = {
            *self.judge.beside,
            *(map(items.gate_key, self.judge.lanes) if len(self.judge.lanes) > 1 else ()),
        }
        elsewhere = {
            process.region
            for process in self.processes
            if process.name.startswith("history") and not process.done
        }
        return [
            (region, key)
            for region, key in self.world.deliverable()
            if key in gates or region in elsewhere
        ]

    # -- what there is before

    def limited(
        self, ceiling: int = 3, *, lanes: tuple[Lane, ...] = (LANE,), filing: Filing = NEVER
    ) -> None:
        """What the value never passes: it may be raised by so much, by the first lane.

        Asked first, if at all.
        """
        self.judge = gates = GateJudge(self.world, lanes, Limit(ceiling=ceiling, region=HOME))
        file_as(filing)
        self.stage.judges.clear()
        self.stage.judged_by(gates, AskedAgain(gates, Drawn(0)), AllSold(gates, Drawn(0)))

    def file_as(self, filing: Filing) -> None:
        file_as(filing)

    def in_two_regions(self, ceiling: int) -> None:
        """A lane in each, with its gate; each is known in the other."""
        self.limited(ceiling, lanes=(LANE, LANE_AWAY))
        for lane in self.judge.lanes:
            self.alone(self.judge.gates_in(HOME).create(lane))
        self.world.quiesce()

    def asked(self, key: str, change: int = 1, *, old: int = 1_000, region: str = HOME) -> Asked:
        if key not in self.named:
            token = tokens.keyed(COUNTER, key, self.world.now_ms - old)
            self.named[key] = self.judge.ask(self.judge.delta(token, region, change))
        return self.named[key]

    def asked_up_to(
        self, key: str, change: int = 5, *, old: int = 1_000, region: str = HOME
    ) -> Asked:
        """A change of which a part may count."""
        if key not in self.named:
            token = tokens.keyed(COUNTER, key, self.world.now_ms - old, tokens.UP_TO)
            self.named[key] = self.judge.ask(self.judge.delta(token, region, change), up_to=True)
        return self.named[key]

    def to_hold(self, key: str, change: int = 1, *, length_ms: int = 10**6) -> None:
        token = hold_token(COUNTER, key, self.world.now_ms - 1_000, length_ms)
        self.named[key] = self.judge.ask(self.judge.delta(token, HOME, change), is_hold=True)

    def sent(self, key: str, change: int = 1, *, old: int = 1_000) -> None:
        self.alone(self._sending(self.asked(key, change, old=old), HOME))

    def held_by_name(self, key: str, *, length_ms: int) -> None:
        """A hold is granted by its name, and can end by its key."""
        one = self.named[key] = self._by_name(key, length_ms)
        self.alone(
            decide_change(
                self.judge.gates_in(HOME),
                one.delta,
                hold=True,
                name=tokens.name_of(one.delta.token),
            )
        )

    def held(self, key: str, change: int = 1, *, over: bool = False) -> None:
        """A hold is granted; its time may be over."""
        self.to_hold(key, change, length_ms=500 if over else 10**6)
        self.sent(key)

    def added_beside(self, lane: Lane, *, everywhere: bool) -> None:
        """A change that no gate decided, from before there was a limit, has arrived in its own
        Region, or in each.
        """
        delta = Delta(lane, tokens.keyed(COUNTER, "beside", self.world.now_ms - 1_000), 1)
        self.world.answer(lane.region, Put(delta_item(delta)))
        if everywhere:
            self.world.quiesce()
        self.judge.arrived |= {*self.world.regions} if everywhere else {lane.region}

    def rolled(self) -> None:
        self.alone(self._rolling())

    def rebuilt_from_its_newest_segment(self) -> None:
        """A restore brought back that segment alone, and an operator rebuilt the gate. The judge
        forgets what nothing lists any more.
        """
        segments, _ = finish(self.world, HOME, past_in(LANE, consistent=True))
        newest = max(segments, key=lambda filed: filed.version)
        for replica in self.world.replicas.values():
            replica.lose()
        self.world.answer(HOME, Put(items.filed_item(newest)))
        self.judge.gates.clear()
        self.judge.decided = {(LANE, token): n for token, n in newest.outcomes.items()}
        self.alone(rebuild(self.judge.gates_in(HOME)))

    def gate_arrives(self, region: str) -> None:
        self.world.deliver(region, items.gate_key(LANE))

    # -- the processes

    def _answers(self, one: Asked, program: Program[Decision], since: int = 1) -> Program[None]:
        self.stage.answered(Decided(one, (yield from program), since))

    def _sending(self, one: Asked, region: str) -> Program[Decision]:
        gates = self.judge.gates_in(region)
        return decide_change(gates, one.delta, hold=one.is_hold, up_to=one.up_to)

    @process
    def send(self, region: str, key: str, change: int = 1, *, old: int = 1_000) -> Program[None]:
        one = self.asked(key, change, old=old, region=region)
        return self._answers(one, self._sending(one, region))

    @process
    def take(self, region: str, key: str, change: int = 5, *, old: int = 1_000) -> Program[None]:
        """As much as there is, up to so much."""
        one = self.asked_up_to(key, change, old=old, region=region)
        return self._answers(one, self._sending(one, region))

    @process
    def send_as_before(self, region: str, key: str) -> Program[None]:
        """As an earlier version: it makes a gate that has decided nothing, then updates it."""
        one = self.asked(key, region=region)

        def program() -> Program[Decision]:
            yield from self.judge.gates_in(region).create(one.delta.lane)
            return (yield from self._sending(one, region))

        return self._answers(one, program())

    def send_in(self, lane: Lane, change: int = 1) -> None:
        """A change of that lane, through its Region."""
        token = tokens.keyed(COUNTER, f"{lane} {change}", self.world.now_ms - 1_000)
        self.named[token] = self.judge.ask(Delta(lane, token, change))
        self.send(token, region=lane.region)

    @process
    def end(self, region: str, key: str, outcome: int) -> Program[None]:
        one = self.named[key]
        return self._answers(one, end(self.judge.gates_in(region), one.delta, outcome))

    @process
    def hold_and_end(self, region: str, key: str, outcome: int) -> Program[None]:
        """By one process, which remembers that it was granted."""
        one, gates = self.named[key], self.judge.gates_in(region, SoldOut())
        yield from self._answers(one, decide_change(gates, one.delta, hold=True))
        yield from self._answers(one, end(gates, one.delta, outcome))

    @process
    def hold_by_name(self, region: str, key: str, *, length_ms: int = 10**6) -> Program[None]:
        """A hold of a length of its own, under the name that it has with every length.

        It may have ended.
        """
        one = self._by_name(key, length_ms)
        with suppress(HoldEnded, LimitReached):
            granted = yield from named.hold(self.judge.gates_in(region), one.delta)
            name = tokens.to_bytes(one.delta.token)[:14]
            if self.judge.by_name.get((LANE, name)) != granted.token:
                self.judge.wrong.append(f"{granted.token} is said to be granted")

    @process
    def close(self, region: str, key: str) -> Program[None]:
        """Nobody is granted a hold by that name after it."""
        one = self._by_name(key, 10**6)
        delta, decision = yield from named.close(self.judge.gates_in(region), one.delta)
        if decision.held is None and decision.outcome not in (
            CLOSED,
            REFUSED,
            self.judge.decided.get((LANE, delta.token)),
        ):
            self.judge.wrong.append(f"{key} is said to be {decision}")

    def _by_name(self, key: str, length_ms: int) -> Asked:
        token = hold_token(COUNTER, key, self.world.now_ms - 1_000, length_ms)
        return self.judge.ask(Delta(LANE, token, 1), is_hold=True, is_named=True)

    @process
    def group(self, region: str, *keys: str) -> Program[None]:
        changes = {one.delta.token: one for one in map(self.asked, keys)}
        deltas = {token: one.delta.change for token, one in changes.items()}

        def program() -> Program[None]:
            for token, decision in (
                yield from add_group(self.judge.gates_in(region), LANE, deltas)
            ).items():
                if isinstance(decision, LedgerError):
                    raise decision
                self.stage.answered(Decided(changes[token], decision, 1))

        return program()

    def _rolling(self) -> Program[object]:
        gates = self.judge.gates_in(HOME)
        return (yield from roll(gates, (yield from gates.read(LANE))))

    @process
    def roll(self, region: str) -> Program[object]:
        return self._rolling()

    @process
    def two_rolls(self, region: str, key: str) -> Program[None]:
        yield from self._rolling()
        self.sent(key)
        yield from self._rolling()

    @process
    def free(self, region: str) -> Program[None]:
        gates = self.judge.gates_in(region)
        yield from free(gates, (yield from gates.read(LANE)))

    @process
    def set_limit(self, region: str, ceiling: int) -> Program[None]:
        """It may be beyond what counts by then."""
        with suppress(LimitReached):
            yield from set_limit(self.judge.gates_in(region), None, ceiling)

    @process
    def in_turn(
        self, region: str, *what: str | int, short: int = 0, left: int | None = None
    ) -> Program[None]:
        """One process sends changes and sets ceilings, one after the other.

        short: what it remembers to be too much. left: and how much was left then.
        """
        memory, now_ms = SoldOut(), self.world.now_ms
        if short:
            memory.note(COUNTER, UP, short, Instant(now_ms, now_ms), Left(None, left))
        gates = self.judge.gates_in(region, memory)
        for each in what:
            if isinstance(each, int):
                yield from set_limit(gates, None, each)
            else:
                one = self.named[each]
                began = self.world.step + 1  # after what the call before this one wrote
                yield from self._answers(
                    one, decide_change(gates, one.delta, up_to=one.up_to), began
                )

    @process
    def history(self, region: str) -> Program[None]:
        """From copies, which may lack something; it says so then."""
        try:
            listed = yield from outcomes(LANE, consistent=True)
        except NotYetReplicated:
            return
        self.stage.answered(Listed(LANE, listed, region == HOME))
