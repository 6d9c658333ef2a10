"""`restore`: a backup, or a moment of the last 35 days, as a new table in which every lane is whole again.

Rule 1: The table itself is not touched, and whoever uses it goes on; the new one has another name.
Rule 2: A backup may hold one half of a transaction, so no compactor may run there before every lane was rebuilt: in
each Region, with the gates of limited counters; and lanes that the directory lacks are adopted first, because the
stream of the new table tells of none of them.
Rule 3: Each step is told, noted in the new table when it is done, and left out by the next run: one that was cut off is
run again.
Rule 4: It ends with what is to be switched, and switches nothing itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer

from compactor import Verification
from ledger.decoding import decoded, list_of, text_of
from ledger.errors import LedgerError, TableMissing
from ledger.requests import Get, Item, Key, Put, keyed
from ledger.settings import Settings
from ledgerctl import adopt, rebuild_all, show
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.compact import each_of
from ledgerctl.failures import DATA, INTERRUPTED, Wrong, told
from ledgerctl.init import active, make_ready, refuse_another_shape
from ledgerctl.lanes import Found, found, named

SWITCH = """Now switch, as docs/deploying.md#restoring-from-a-backup has it:
1. stop whoever writes to {old}, and let its queues run empty or keep what is in them;
2. take the stack's table over, with the table's name {new}, and deploy; LEDGER_TABLE={new} for processes of your own;
3. send again what came after {moment}, with the same keys and times: what is there counts once."""


@command("restore", TABLE)
def restore(
    call: Call,
    to: Annotated[str, typer.Option(help="The name of the new table.")],
    at: Annotated[str | None, typer.Option(help="A time of the last 35 days; without it and --backup, now.")] = None,
    backup: Annotated[str | None, typer.Option(help="The ARN of a backup, instead of a time.")] = None,
    no_deletion_protection: Annotated[
        bool, typer.Option("--no-deletion-protection", help="Let anybody delete the new table, by mistake too.")
    ] = False,
) -> None:
    """Restore the table to a new one, and rebuild and verify all of it there. May be cut off and run again."""
    if at is not None and backup is not None:
        raise Wrong("BadArguments", "--at and --backup name two moments.", "Give one of them.")
    if to == call.settings.table:
        raise Wrong("BadArguments", f"{to} is the table itself.", "--to names a new one.")
    moment = show.time_typed(at)
    old = call.settings.table
    source = backup or (f"{old} at {show.moment(moment)}" if moment else f"{old} as it was")
    new = call.of_table(to)
    steps = Steps(new, source)
    with steps.told():
        if backup is None:
            refuse_another_shape(call)
        if not _is_there(new, call.settings, backup):
            _begin(call, to, moment, backup)
            steps.say(f"began to restore {source} to {to}")
        active(new, new.settings.region, ())
        steps.read()
        steps.once("ready", lambda: make_ready(new, steps.say, deletion_protection=not no_deletion_protection))
        for region in new.settings.regions:
            there = new.of_region(region)
            steps.once(f"adopted {region}", partial(_adopt, there, steps))
            steps.once(f"rebuilt {region}", partial(_rebuild, there, steps))
        every = found(new, at_home=True)
        limited = Found([lane for lane in every.lanes if new.settings.limit_of(lane.counter) is not None])
        steps.once("rebuilt gates", partial(_rebuild, new, steps, limited))
        steps.once("verified", partial(_verify, new, steps, every.counters))
    if call.json:
        call.document({"from": source, "to": to, "regions": list(new.settings.regions), "steps": steps.said})
    else:
        call.say(SWITCH.format(old=call.settings.table, new=to, moment=at or backup or "the restore"))


class Steps:
    """The steps of a restore, noted in an item of the new table (docs/data-model.md#directory)."""

    def __init__(self, new: Call, source: str) -> None:
        self._new, self._source = new, source
        self._done: list[str] = []
        self.said: list[str] = []

    @property
    def _key(self) -> Key:
        return Key(f"sweep#{self._new.settings.region}", "restore")

    def say(self, text: str) -> None:
        self.said.append(text)
        if not self._new.json:
            self._new.say(text)

    def read(self) -> None:
        """The steps that earlier runs did; an item of another table came with the data. Raises Wrong."""
        table = self._new.settings.table
        item: Item | None = self._new.table.answer(Get(self._key))
        if item is not None and item.get("table") == {"S": table}:
            source, self._done = decoded(
                item, self._key.pk, lambda: (text_of(item, "source"), [str(e.get("S")) for e in list_of(item, "done")])
            )
            if source != self._source:
                message = f"{table} was restored from {source}, not from {self._source}. Nothing was changed."
                raise Wrong("TableDiffers", message, "Name another table with --to, or restore the same moment.")
            if self._done:
                self.say(f"done before: {', '.join(self._done)}")
            return
        self._write()

    def once(self, name: str, do: Callable[[], None]) -> None:
        """Do a step, unless it was done."""
        if name not in self._done:
            do()
            self._done.append(name)
            self._write()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Ends with what was done, and how it goes on, where a step fails."""
        try:
            yield
        except (LedgerError, Wrong, KeyboardInterrupt) as failure:
            done = f"Done so far: {'; '.join(self.said) or 'nothing'}."
            remedy = "Run the same command again: it goes on where it stopped. Nobody may use the new table before."
            if isinstance(failure, KeyboardInterrupt):
                raise Wrong("Interrupted", f"Interrupted. {done}", remedy, INTERRUPTED) from None
            wrong = failure if isinstance(failure, Wrong) else told(failure, self._new.where)
            if not self.said:
                raise wrong from None
            raise Wrong(
                wrong.kind, f"{wrong.message} {done}", f"{wrong.remedy}\n{remedy}".strip(), wrong.code
            ) from None

    def _write(self) -> None:
        table, done = self._new.settings.table, {"L": [{"S": name} for name in self._done]}
        self._new.table.answer(Put(keyed(self._key, table={"S": table}, source={"S": self._source}, done=done)))


def _is_there(new: Call, old: Settings, backup: str | None) -> bool:
    """Whether the new table is there, from an earlier run. Raises Wrong for one that is not from this source."""
    answer = new.ask(new.settings.region, "describe_table", TableName=new.settings.table)
    if isinstance(answer, TableMissing):
        return False
    if isinstance(answer, LedgerError):
        raise answer
    summary = answer["Table"].get("RestoreSummary", {})
    noted: Item | None = None
    if answer["Table"]["TableStatus"] == "ACTIVE":
        noted = new.table.answer(Get(Key(f"sweep#{new.settings.region}", "restore")))
    ours = noted is not None and noted.get("table") == {"S": new.settings.table}
    of_backup = backup is not None and summary.get("SourceBackupArn") == backup
    of_table = backup is None and str(summary.get("SourceTableArn", "")).endswith(f"/{old.table}")
    if not (ours or of_backup or of_table):
        message = (
            f"There is a table {new.settings.table} already, and it was not restored from this. It is not touched."
        )
        raise Wrong("TableDiffers", message, "Name another with --to.")
    return True


def _begin(call: Call, to: str, moment: Any, backup: str | None) -> None:
    if backup is not None:
        answer = call.ask(call.settings.region, "restore_table_from_backup", TargetTableName=to, BackupArn=backup)
    else:
        when = {"UseLatestRestorableTime": True} if moment is None else {"RestoreDateTime": moment}
        answer = call.ask(
            call.settings.region,
            "restore_table_to_point_in_time",
            SourceTableName=call.settings.table,
            TargetTableName=to,
            **when,
        )
    if isinstance(answer, LedgerError):
        wrong = told(answer, call.where)
        remedy = "Is the moment within --at's 35 days, and point-in-time recovery on? `ledgerctl doctor` says."
        raise Wrong(wrong.kind, f"{answer.__cause__ or wrong.message}. Nothing was restored.", remedy, wrong.code)


def _adopt(there: Call, steps: Steps) -> None:
    done = there.run(adopt.adopting(there.settings.region))
    region = there.settings.region
    steps.say(f"{region}: lanes that were new in the directory: {done.new:,}")
    if unnamed := sorted(done.regions - {*there.settings.regions}):
        there.note(f"There are lanes of {' '.join(unnamed)}, which --regions does not name: not rebuilt.", "red")


def _rebuild(there: Call, steps: Steps, limited: Found | None = None) -> None:
    """The lanes of a Region, or the gates of limited counters. Raises Wrong when one could not be rebuilt."""
    region = there.settings.region
    done = rebuild_all.rebuilt(
        there, found(there, at_home=True) if limited is None else limited, gates=limited is not None
    )
    for name, said in done.told.items():
        for line in said:
            steps.say(f"{name}: {line}")
    if done.failed:
        why = "; ".join(f"{name}: {error}" for name, error in list(done.failed.items())[:3])
        message = f"{region}: {show.counted(len(done.failed), 'counter')} could not be rebuilt: {why}"
        raise Wrong("NotRebuilt", message, "docs/operations.md#verify-and-rebuild-a-counter.", DATA)
    what = f"{region}: counters" if limited is None else "limited counters whose gates were"
    steps.say(f"{what} rebuilt: {done.rebuilt:,}")


def _verify(new: Call, steps: Steps, counters: list[str]) -> None:
    outcomes = each_of(new, "recounting", counters, new.compactor.verify)
    wrong = [name for name, outcome in outcomes if not (isinstance(outcome, Verification) and outcome.ok)]
    for _, outcome in outcomes:
        if isinstance(outcome, LedgerError):
            new.note(str(outcome), "red")
        else:
            for difference in outcome.differences:
                new.note(difference, "red")
    if wrong:
        message = f"{show.counted(len(wrong), 'counter')} of {len(counters):,} do not add up: {named(wrong)}."
        raise Wrong("NotVerified", message, "docs/operations.md#verify-difference-a-recount-differs.", DATA)
    steps.say(f"counters that add up: {len(counters):,} of {len(counters):,}")
