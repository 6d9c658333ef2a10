"""`Compactor` cleans, folds and settles the lanes of its own Region.

Rule 1: It writes nothing for another Region's lanes.
Rule 2: After every failure a step gives up, and starts again next time.
Rule 3: Two compactors at once are safe: the version decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from compactor.gate_rebuild import rebuild as rebuild_gates
from compactor.inspection import error_of, unread_beyond
from compactor.lanes import find_lanes
from compactor.rebuild import rebuild
from compactor.report import Report, Tally
from compactor.verify import LaneCheck, Verification, verify, verify_gates
from compactor.visit import visit
from ledger.core import clocks
from ledger.core.cost import carried
from ledger.core.errors import LedgerError
from ledger.core.observing import DONE, Observe, Observer, observed
from ledger.core.requests import Program, Result, Table
from ledger.core.running import run
from ledger.core.settings import Settings, check_settings
from ledger.core.values import Lane
from ledger.gate.gates import Gates
from ledger.lane.shape import ShapeCheck
from ledger.lane.tail import at
from ledger.tables.dynamo import table_of
from ledger.tables.failures import DynamoDBClient

WORKERS = 8
"""Lanes that `run` compacts at once; one on a table with `one_at_a_time`."""


def _outcome_of(report: Report) -> str:
    return next((type(problem).__name__ for problem in report.problems.values()), DONE)


class Compactor:
    """Compacts the lanes of `settings.region`. It is thread-safe, and any number may run at once.

    clients: boto3 DynamoDB clients by Region; it makes those that are missing, because clean and
    verify read other Regions too. clock, observe as for Ledger. tables: anything that answers
    requests, by Region, instead of clients.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clients: Mapping[str, DynamoDBClient] | None = None,
        clock: clocks.Clock = clocks.wall_clock,
        tables: Mapping[str, Table] | None = None,
        observe: Observe | None = None,
    ) -> None:
        self.settings = check_settings(settings)
        self._observer = Observer(observe)
        self._table = table_of(settings, clients=clients, tables=tables)
        self._now = clocks.instants(clocks.checked(clock))
        self._shape = ShapeCheck(settings)

    @observed("compactor.compact", DONE)
    def compact(self, counter: str) -> Report:
        """Clean, fold and settle a counter's lanes of this Region.

        Raises InvalidCounter, SettingsMismatch, LaneDamaged, DamagedItem, OutcomeUnknown and the
        other TableErrors. It tries every lane, then raises the first error. No error loses
        anything, and the next call starts again.
        """
        lanes = self.settings.lanes_of(counter, self.settings.region)
        self._shape.ask(self._table, self._now)
        report = Report.total(map(self._visit, lanes))
        for error in report.problems.values():
            raise error
        return report

    @observed("compactor.run", _outcome_of)
    def run(self) -> Report:
        """Compact every lane of this Region that needs it, by a scan of the table. The report has
        the failures.

        It also has a LaneUnread for every lane, of any Region, that no reader of these settings
        looks at. The run puts every lane of this Region that the scan finds into the directory,
        also those of counters with a limit.
        """
        lanes = self._run(find_lanes(self.settings))
        seen = Report(problems=lanes.unlisted | {lane: error_of(lane) for lane in lanes.unread})
        at_once = 1 if getattr(self._table, "one_at_a_time", False) else WORKERS
        with ThreadPoolExecutor(at_once, thread_name_prefix="compactor") as workers:
            return Report.total([seen, *workers.map(carried(self._visit), lanes.needy)])

    @observed("compactor.verify", DONE)
    def verify(self, counter: str) -> Verification:
        """Recount a counter from its segments and deltas, each lane in its own Region. It writes
        nothing.

        It also looks at the next four shards, in the Regions of the settings: changes there are in
        no value. Raises GaveUp (a commit was just landing: call again), ReadTooSlow, DamagedItem,
        PeriodOver and the TableErrors.
        """
        plan = self.settings.plan(counter)
        plan.check_kept(self._now().wall_ms)
        unread = (
            self._run(unread_beyond(plan.counter, region, self.settings), region)
            for region in self.settings.regions
        )
        gates, limit_ms = Gates.of(self.settings, plan.counter), self.settings.read_time_max_ms
        checks: Iterable[LaneCheck]
        if gates is not None:
            self._shape.ask(self._table, self._now, plan.counter)
            checks = self._run(verify_gates(gates))
        else:
            checks = (
                self._run(verify(lane, read_time_max_ms=limit_ms), lane.region)
                for lane in plan.lanes()
            )
        return Verification(
            plan.counter, tuple(checks), tuple(lane for found in unread for lane in found)
        )

    @observed("compactor.rebuild", DONE)
    def rebuild(self, counter: str) -> dict[Lane, int]:
        """Recompute the checkpoints of a counter's lanes of this Region from their segments; return
        the totals.

        For a counter with a limit it writes the gates of *all* its lanes anew, each in its own
        Region, because rights belong to all of them together, and returns their values. It takes
        the outcomes that a gate had filed, and those that it still has. Every Region must answer.
        Meanwhile no process may add to the counter, or hold a part of it, in any Region.
        `ledgerctl rebuild` also says what is lost.

        It is for an operator, while no compactor works on the lanes: always after a restore from a
        backup, or when this Region's replica was made again, and after LaneDamaged once you know
        the cause. It undoes the orphans of lost commits. If it fails, call it again before a
        compactor runs.

        Raises GaveUp, LaneDamaged, DamagedItem, LimitMismatch, OutcomeUnknown and the other
        TableErrors; no value changed, except perhaps that of a gate.
        """
        plan = self.settings.plan(counter)
        gates = Gates.of(self.settings, plan.counter)
        plan.check_kept(self._now().wall_ms)
        if gates is not None:
            self._shape.ask(self._table, self._now, plan.counter)
            return {made.gate.lane: made.gate.value for made in self._run(rebuild_gates(gates))}
        rebuilt = {lane: self._run(rebuild(lane)) for lane in plan.lanes(self.settings.region)}
        return {
            lane: checkpoint.total for lane, checkpoint in rebuilt.items() if checkpoint is not None
        }

    def _visit(self, lane: Lane) -> Report:
        tally = Tally()
        failure: LedgerError | None = None
        try:
            self._run(visit(lane, tally, self.settings))
        except LedgerError as error:
            failure = error
        return Report.of(lane, tally, failure)

    def _run(self, program: Program[Result], region: str | None = None) -> Result:
        """Run a program in this Region, or with each of its requests at another one."""
        self._shape.ask(self._table, self._now)
        away = region not in (None, self.settings.region)
        return run(at(region, program) if region and away else program, self._table, self._now)
