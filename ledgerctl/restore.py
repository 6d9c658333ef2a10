"""`restore`: makes a new table of a backup, or of a moment of the last 35 days, in which every lane
is whole again.

Rule 1: It does not touch the table itself, whose users go on; the new one has another name.
Rule 2: A backup may hold one half of a transaction, so no compactor may run there before `restore`
has rebuilt every lane, in each Region, with the gates of limited counters. First it puts lanes into
the directory that are not there, because the stream of the new table has no records of them.
Rule 3: It always begins at the beginning: you run it again as a whole after it was cut off. A run
that has ended notes that in the new table, which may be in use by then; a further run changes
nothing.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import typer

from compactor import Verification
from compactor.lanes import find_lanes
from ledger.core.decoding import decoded, list_of, text_of
from ledger.core.errors import PAGES, LedgerError, NotAllowed, TableMissing
from ledger.core.requests import Get, Item, Key, Put, keyed
from ledger.core.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Unprotected, command
from ledgerctl.failures import DATA, Wrong, cut_off, meaning, of_credentials, of_step
from ledgerctl.init import Steps, active, make_ready, refuse_another_shape
from ledgerctl.lanes import each_of, few_of, found
from ledgerctl.rebuilding import rebuild_all

ENDED = "verified"
SWITCH = f"Now switch, as {PAGES}docs/deploying.md#restoring-from-a-backup has it:"
STEPS = """
1. stop everything that writes to {old}, and let its queues run empty or keep their messages;
2. take the stack's table over, with the table's name {new}, and deploy; set \
LEDGER_TABLE={new} for processes of your own;
3. send the changes after {moment} again, with the same keys and times: each counts once."""


def _refuse(old: str, to: str, at: str | None, backup: str | None) -> None:
    """Raises Wrong for arguments that contradict each other."""
    if at is not None and backup is not None:
        why = "--at and --backup name two moments. Nothing was restored."
        raise Wrong("BadArguments", why, "Give one of them.")
    if to == old:
        why = f"{to} is the table itself. Nothing was restored."
        raise Wrong("BadArguments", why, "Name a new one with --to.")


NewTable = Annotated[str, typer.Option(help="The name of the new table.")]
Moment = Annotated[
    str | None, typer.Option(help="A time of the last 35 days; now, without it and --backup.")
]
Backup = Annotated[str | None, typer.Option(help="The ARN of a backup, instead of a time.")]


@command("restore")
def restore(
    call: Call,
    to: NewTable,
    at: Moment = None,
    backup: Backup = None,
    no_deletion_protection: Unprotected = False,
) -> None:
    """Restore the table to a new one, and rebuild and verify all of it there. Run it again
    after any failure.
    """
    old = call.settings.table
    _refuse(old, to, at, backup)
    moment = show.time_typed(at)
    source = backup or (f"{old} at {show.moment(moment)}" if moment else f"{old} as it was")
    new = call.other(table=to)
    steps = Steps(new)
    restored = Restored(new, source, steps)
    try:
        if backup is None:
            refuse_another_shape(call)
        if not restored.is_there(old, backup):
            _begin(call, to, moment, backup)
            steps.say(f"began to restore {source} to {to}")
        active(new, call.settings.region)
        if restored.has_ended():
            steps.say(f"{to} was restored and verified before; nothing to do")
        else:
            restored.make_whole(deletion_protection=not no_deletion_protection)
    except (LedgerError, Wrong, KeyboardInterrupt) as failure:
        if not steps.done and not isinstance(failure, KeyboardInterrupt):
            raise
        done = f"Done so far: {'; '.join(steps.done) or 'nothing'}."
        remedy = (
            "Run the same command again: it begins at the beginning. No process may use the new "
            "table until it ends."
        )
        raise cut_off(failure, new.where, done, remedy) from None
    call.document(
        {"from": source, "to": to, "regions": list(call.settings.regions), "steps": steps.done}
    )
    # Rule 4: it ends with the steps of the switch, and switches nothing itself.
    call.say(SWITCH + STEPS.format(old=old, new=to, moment=at or backup or "the restore"))


class Restored:
    """The new table. An item of it says when all is done (docs/data-model.md#directory)."""

    def __init__(self, new: Call, source: str, steps: Steps) -> None:
        self.call, self.steps, self._source = new, steps, source
        self._table = new.settings.table
        self._key = Key(f"sweep#{new.settings.region}", "restore")

    def is_there(self, old: str, backup: str | None) -> bool:
        """Whether the new table is there, from an earlier run.

        Raises Wrong for a table from another source.
        """
        answer = self.call.ask(self.call.settings.region, "describe_table", TableName=self._table)
        if isinstance(answer, TableMissing):
            return False
        if isinstance(answer, LedgerError):
            raise answer
        summary = answer["Table"].get("RestoreSummary", {})
        of_backup = backup is not None and summary.get("SourceBackupArn") == backup
        of_table = backup is None and str(summary.get("SourceTableArn", "")).endswith(f"/{old}")
        noted = answer["Table"]["TableStatus"] == "ACTIVE" and self._noted() is not None
        if not (noted or of_backup or of_table):
            message = (
                f"There is a table {self._table} already, and it was not restored from "
                "this. Nothing was changed."
            )
            raise Wrong("TableDiffers", message, "Name another with --to.")
        return True

    def has_ended(self) -> bool:
        """Whether an earlier run has ended; if none began, note that this one does.

        Raises Wrong.
        """
        item = self._noted()
        if item is None:
            self._note()
            return False
        source, done = decoded(
            item, self._key.pk, lambda: (text_of(item, "source"), list_of(item, "done"))
        )
        if source != self._source:
            message = (
                f"{self._table} was restored from {source}, not from {self._source}. "
                "Nothing was changed."
            )
            raise Wrong(
                "TableDiffers", message, "Name another table with --to, or restore the same moment."
            )
        return {"S": ENDED} in done

    def make_whole(self, *, deletion_protection: bool) -> None:
        """List, rebuild and verify all lanes of all Regions. Raises Wrong and LedgerError."""
        make_ready(self.call, self.steps, deletion_protection=deletion_protection)
        regions = self.call.settings.regions
        for region in regions:
            there = self.call.other(region=region, regions=",".join(regions))
            self._list(there)
            lanes = [
                lane for lane in found(there, at_home=True).lanes if not self._is_limited(lane)
            ]
            self._rebuild(there, lanes, f"{region}: counters")
        every = found(self.call, at_home=True)
        self._rebuild(
            self.call, filter(self._is_limited, every.lanes), "limited counters whose gates were"
        )
        self._verify(every.counters)
        self._note(ENDED)

    def _noted(self) -> Item | None:
        """The note of this table; one of another table came with the data."""
        item: Item | None = self.call.table.answer(Get(self._key))
        return item if item is not None and item.get("table") == {"S": self._table} else None

    def _note(self, *done: str) -> None:
        steps = {"L": [{"S": step} for step in done]}
        self.call.table.answer(
            Put(keyed(self._key, table={"S": self._table}, source={"S": self._source}, done=steps))
        )

    def _list(self, there: Call) -> None:
        region = there.settings.region
        scanned = there.run(find_lanes(there.settings))
        for error in scanned.unlisted.values():
            raise error
        self.steps.say(f"{region}: lanes that were new in the directory: {len(scanned.listed):,}")
        if unread := sorted({lane.region for lane in scanned.unread} - {*there.settings.regions}):
            there.note(
                f"Lanes of {' '.join(unread)} are not rebuilt: name these Regions in --regions.",
                "red",
            )

    def _is_limited(self, lane: Lane) -> bool:
        return self.call.settings.limit_of(lane.counter) is not None

    def _rebuild(self, there: Call, lanes: Iterable[Lane], what: str) -> None:
        """Rebuild the lanes of a Region, or the gates of limited counters.

        Raises Wrong if one fails.
        """
        done, failed = rebuild_all(there, lanes)
        for name, lost in done.items():
            if lost:
                self.steps.say(f"{name}: {' '.join(lost)}")
        if failed:
            why = "; ".join(f"{name}: {of_step(error)}" for name, error in list(failed.items())[:3])
            message = f"{show.counted(len(failed), 'counter')} could not be rebuilt: {why}"
            raise Wrong(
                "NotRebuilt",
                message,
                f"See {PAGES}docs/operations/runbooks.md#verify-and-rebuild-a-counter.",
                DATA,
            )
        self.steps.say(f"{what} rebuilt: {len(done):,}")

    def _verify(self, counters: list[str]) -> None:
        outcomes = each_of(self.call, "counters", counters, self.call.compactor.verify)
        wrong = [
            name
            for name, outcome in outcomes
            if not (isinstance(outcome, Verification) and outcome.ok)
        ]
        for _, outcome in outcomes:
            for difference in (
                [of_step(outcome)] if isinstance(outcome, LedgerError) else outcome.differences
            ):
                self.call.note(difference, "red")
        if wrong:
            message = (
                f"{show.counted(len(wrong), 'counter')} of {len(counters):,} do not add "
                f"up: {few_of(wrong)}."
            )
            raise Wrong(
                "NotVerified",
                message,
                f"See {PAGES}docs/operations/values.md#verify-difference-a-recount-differs.",
                DATA,
            )
        self.steps.say(f"counters that add up: {len(counters):,} of {len(counters):,}")


def _begin(call: Call, to: str, moment: datetime | None, backup: str | None) -> None:
    region = call.settings.region
    if backup is not None:
        answer = call.ask(region, "restore_table_from_backup", TargetTableName=to, BackupArn=backup)
    else:
        when = {"UseLatestRestorableTime": True} if moment is None else {"RestoreDateTime": moment}
        names = {"SourceTableName": call.settings.table, "TargetTableName": to}
        answer = call.ask(region, "restore_table_to_point_in_time", **names, **when)
    if isinstance(answer, LedgerError):
        wrong = meaning(answer, call.where)
        remedy = (
            "Give --at a time of the last 35 days, with point-in-time recovery on: "
            "`ledgerctl doctor` shows it."
        )
        if isinstance(answer, NotAllowed) or of_credentials(answer.__cause__):
            remedy = wrong.remedy
        raise Wrong(
            wrong.kind,
            f"{answer.__cause__ or wrong.message}. Nothing was restored.",
            remedy,
            wrong.code,
        )
