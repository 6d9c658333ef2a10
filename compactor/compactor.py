"""`Compactor`: folds, settles and cleans the lanes of its own Region.

Rules: it writes nothing for another Region's lanes; every failure of a step means: give up, start again next time; two
compactors at once are safe, the version decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from compactor.lanes import lanes_in_need
from compactor.rebuild import rebuild
from compactor.report import Report, Tally
from compactor.verify import Verification, verify
from compactor.visit import visit
from ledger import clocks
from ledger.errors import GaveUp, InvalidInput, InvalidSettings, LedgerError, shown
from ledger.requests import Program, Result, Table, run
from ledger.settings import Settings, check_settings
from ledger.table import DynamoTable, check_table
from ledger.values import Lane

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

WORKERS = 8
"""Lanes that `run` compacts at once."""


class Compactor:
    """Compacts the lanes of `settings.region`. Thread-safe; any number may run at once.

    clients: boto3 DynamoDB clients by Region, made where missing; clean and verify ask other Regions too.
    clock as for Ledger. tables: whatever answers requests, by Region, instead of clients.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clients: Mapping[str, DynamoDBClient] | None = None,
        clock: clocks.Clock = clocks.wall_clock,
        tables: Mapping[str, Table] | None = None,
    ) -> None:
        self.settings = check_settings(settings)
        for name, given in (("clients", clients), ("tables", tables)):
            if given is not None and not isinstance(given, Mapping):
                raise InvalidInput(f"{name} is a mapping by Region, not {shown(given)}.")
        lacking = [] if tables is None else [region for region in settings.regions if region not in tables]
        if lacking:
            raise InvalidSettings(f"tables lacks {lacking} of regions={settings.regions!r}.")
        self._tables: dict[str, Table] = {
            region: DynamoTable.of(settings, clients, region) if tables is None else check_table(tables[region])
            for region in settings.regions
        }
        self._now = clocks.instants(clocks.checked(clock))

    def compact(self, counter: str) -> Report:
        """Fold, settle and clean a counter's lanes of this Region.

        Raises InvalidCounter, LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors, the first after every
        lane was tried; nothing is lost by any of them, and the next call starts again.
        """
        report = Report.total(self._visit(lane) for lane in self.settings.lanes_of(counter, self.settings.region))
        for error in report.problems.values():
            raise error
        return report

    def run(self) -> Report:
        """Compact every lane of this Region that needs it, found by a scan of the table. Failures are in the report."""
        needy = self._run(lanes_in_need(self.settings.region, fold_min=self.settings.fold_min))
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="compactor") as workers:
            return Report.total(workers.map(self._visit, needy))

    def verify(self, counter: str) -> Verification:
        """Recount a counter from its segments and deltas, each lane in its own Region; writes nothing.

        Raises GaveUp (a commit was just landing: ask again), ReadTooSlow, DamagedItem and the TableErrors.
        """
        lanes = self.settings.lanes_of(counter)
        limit = self.settings.read_time_max_ms
        checks = (self._run(verify(lane, read_time_max_ms=limit), lane.region) for lane in lanes)
        return Verification(counter, tuple(checks))

    def rebuild(self, counter: str) -> dict[Lane, int]:
        """Recompute the checkpoints of a counter's lanes of this Region from their segments; their new totals.

        For an operator, while no compactor works on them: always after a restore from a backup, or when this Region's
        replica was made again, and after LaneDamaged once the cause is known. Undoes the orphans of lost commits. When
        it failed, call it again before a compactor runs.

        Raises GaveUp, LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors; no value was changed.
        """
        rebuilt = {lane: self._run(rebuild(lane)) for lane in self.settings.lanes_of(counter, self.settings.region)}
        return {lane: checkpoint.total for lane, checkpoint in rebuilt.items() if checkpoint is not None}

    def _visit(self, lane: Lane) -> Report:
        tally = Tally()
        try:
            self._run(visit(lane, tally, self.settings))
        except GaveUp:
            return Report.of(tally, gave_up=True)
        except LedgerError as error:
            return Report.of(tally, problems={lane: error})
        return Report.of(tally)

    def _run(self, program: Program[Result], region: str | None = None) -> Result:
        return run(program, self._tables[region or self.settings.region], self._now)
