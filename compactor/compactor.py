"""`Compactor`: cleans, folds and settles the lanes of its own Region.

Rule 1: It writes nothing for another Region's lanes.
Rule 2: Every failure of a step means: give up, start again next time.
Rule 3: Two compactors at once are safe, the version decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from compactor.lanes import find_lanes
from compactor.looking import error_of, unread_beyond
from compactor.rebuild import rebuild
from compactor.report import Report, Tally
from compactor.verify import LaneCheck, Verification, verify, verify_gates
from compactor.visit import visit
from ledger import clocks
from ledger.cost import carried
from ledger.dynamo.failures import DynamoDBClient
from ledger.errors import LedgerError
from ledger.gate.gates import Gates
from ledger.gate.rebuild import rebuild as rebuild_gates
from ledger.lane.shape import ShapeCheck
from ledger.lane.tail import at
from ledger.observing import DONE, Observe, Observer, observed
from ledger.requests import Program, Result, Table, run
from ledger.settings import Settings, check_settings
from ledger.table import table_of
from ledger.values import Lane

WORKERS = 8
"""Lanes that `run` compacts at once; one, on a table that asks for it (`ledger.requests.Table`)."""


def _outcome_of(report: Report) -> str:
    return next((type(problem).__name__ for problem in report.problems.values()), DONE)


class Compactor:
    """Compacts the lanes of `settings.region`. Thread-safe; any number may run at once.

    clients: boto3 DynamoDB clients by Region, made where missing; clean and verify ask other Regions too.
    clock, observe as for Ledger. tables: whatever answers requests, by Region, instead of clients.
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

        Raises InvalidCounter, SettingsMismatch, LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors; of
        the lanes' errors the first, after every lane was tried. Nothing is lost by any, and the next call starts again.
        """
        lanes = self.settings.lanes_of(counter, self.settings.region)
        self._shape.ask(self._table, self._now)
        report = Report.total(map(self._visit, lanes))
        for error in report.problems.values():
            raise error
        return report

    @observed("compactor.run", _outcome_of)
    def run(self) -> Report:
        """Compact every lane of this Region that needs it, found by a scan of the table. Failures are in the report.

        So is a LaneUnread for every lane, of any Region, that no reader of these settings looks at. Every lane of this
        Region that the scan meets is then in the directory, those of counters with a limit too.
        """
        lanes = self._run(find_lanes(self.settings))
        seen = Report(problems=lanes.unlisted | {lane: error_of(lane) for lane in lanes.unread})
        at_once = 1 if getattr(self._table, "one_at_a_time", False) else WORKERS
        with ThreadPoolExecutor(at_once, thread_name_prefix="compactor") as workers:
            return Report.total([seen, *workers.map(carried(self._visit), lanes.needy)])

    @observed("compactor.verify", DONE)
    def verify(self, counter: str) -> Verification:
        """Recount a counter from its segments and deltas, each lane in its own Region; writes nothing.

        Looks, in the Regions of the settings, at the next four shards too: what is there is in no value.
        Raises GaveUp (a commit was just landing: ask again), ReadTooSlow, DamagedItem, PeriodOver and the TableErrors.
        """
        self.settings.check_kept(counter, self._now().wall_ms)
        unread = (self._run(unread_beyond(counter, region, self.settings), region) for region in self.settings.regions)
        gates, limit_ms = Gates.of(self.settings, counter), self.settings.read_time_max_ms
        checks: Iterable[LaneCheck]
        if gates is not None:
            self._shape.ask(self._table, self._now, counter)
            checks = self._run(verify_gates(gates))
        else:
            lanes = self.settings.lanes_of(counter)
            checks = (self._run(verify(lane, read_time_max_ms=limit_ms), lane.region) for lane in lanes)
        return Verification(counter, tuple(checks), tuple(lane for found in unread for lane in found))

    @observed("compactor.rebuild", DONE)
    def rebuild(self, counter: str) -> dict[Lane, int]:
        """Recompute the checkpoints of a counter's lanes of this Region from their segments; their new totals.

        Of a counter with a limit: write the gates of *all* its lanes anew from what they filed, each in its own Region,
        because rights are of all of them together; their values. Every Region must answer, and nobody may add to the
        counter, or hold of it, in any. `ledgerctl rebuild` also says what is lost and what is owed.

        For an operator, while no compactor works on its lanes: always after a restore from a backup, or when this
        Region's replica was made again, and after LaneDamaged once the cause is known. Undoes the orphans of lost
        commits. When it failed, call it again before a compactor runs.

        Raises GaveUp, LaneDamaged, DamagedItem, LimitMismatch, OutcomeUnknown and the other TableErrors; no value was
        changed, but perhaps that of a gate.
        """
        gates = Gates.of(self.settings, counter)
        self.settings.check_kept(counter, self._now().wall_ms)
        if gates is not None:
            self._shape.ask(self._table, self._now, counter)
            return {each.gate.lane: each.gate.value for each in self._run(rebuild_gates(gates))}
        rebuilt = {lane: self._run(rebuild(lane)) for lane in self.settings.lanes_of(counter, self.settings.region)}
        return {lane: checkpoint.total for lane, checkpoint in rebuilt.items() if checkpoint is not None}

    def _visit(self, lane: Lane) -> Report:
        tally = Tally()
        failure: LedgerError | None = None
        try:
            self._run(visit(lane, tally, self.settings))
        except LedgerError as error:
            failure = error
        return Report.of(lane, tally, failure)

    def _run(self, program: Program[Result], region: str | None = None) -> Result:
        """Run a program here, or with each of its requests at another Region."""
        self._shape.ask(self._table, self._now)
        away = region not in (None, self.settings.region)
        return run(at(region, program) if region and away else program, self._table, self._now)
