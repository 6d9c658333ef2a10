"""`rebuild`: checkpoints anew from their segments, after a restore or damage, or when a replica was made again.

Rule 1: For the lanes of one Region, that of --region.
Rule 2: It shows what it would write, and asks first.
Rule 3: What it shows is decided by the very program that writes, on a table that lets nothing be written.
Rule 4: Each lane is told as it is done, and one that cannot be rebuilt stops no other.
Rule 5: A counter with a limit has gates instead: rebuild_gates.py. All counters: rebuild_all.py.
"""

from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from compactor.rebuild import rebuild as rebuilding
from ledger import clocks, items
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.gate.gates import Gates
from ledger.requests import Get, Item, run
from ledger.values import Checkpoint, Lane
from ledgerctl import completion
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, command
from ledgerctl.failures import NO_ANSWER, Wrong
from ledgerctl.lanes import Scan, found
from ledgerctl.rebuild_all import rebuild_all
from ledgerctl.rebuild_gates import rebuild_gates
from ledgerctl.unwritten import Unwritten, agree

REBUILD = "Stop the compactor of the Region first (docs/operations.md#stop-and-start-the-compactor)."


@dataclass(frozen=True, slots=True)
class Plan:
    """A lane: what stands there `now`, in words, and what a rebuild `would` do: write, delete, nothing or fail."""

    lane: Lane
    now: str
    would: str
    checkpoint: Checkpoint | None = None
    error: LedgerError | None = None

    def says(self) -> str:
        if self.checkpoint is not None:
            total, count = self.checkpoint.total, self.checkpoint.count
            return f"its segments give a checkpoint with total {total:,}, count {count:,}"
        return {
            "delete": "it has no segments: this checkpoint is deleted, and its deltas are the tail",
            "nothing": "its segments give no checkpoint: there are none",
            "fail": f"it cannot be rebuilt: {self.error}",
        }[self.would]

    def fields(self) -> dict[str, object]:
        sums = {} if self.checkpoint is None else {"total": self.checkpoint.total, "count": self.checkpoint.count}
        error = {} if self.error is None else {"error": str(self.error)}
        return {"lane": str(self.lane), "now": self.now, "would": self.would, **sums, **error}


@command("rebuild", COMPACTION)
def rebuild(
    call: Call,
    counter: Annotated[
        str | None, typer.Argument(help="The counter's name; or --all.", autocompletion=completion.counters)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All counters, by the directory; `adopt` it first.")] = False,
    scan: Scan = False,
    anew: Annotated[bool, typer.Option("--anew", hidden=True)] = False,  # it always does, and scripts say so
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
) -> None:
    """Write a counter's checkpoints anew from its segments, or those of --all; asks first.

    For the lanes of this Region, after a restore or damage, or when its replica was made again. Of a limited counter:
    all its gates, from what they filed.
    """
    if (counter is None) != every:
        raise Wrong(
            "BadArguments", "Name one counter, or give --all.", "`ledgerctl list` names the counters there are."
        )
    if counter is not None:
        _one(call, counter, yes=yes, dry_run=dry_run)
    else:
        warning = f"{REBUILD} No compactor may work on these lanes meanwhile, and nobody use what has a limit."
        rebuild_all(call, found(call, scan=scan), plan, warning, yes=yes, dry_run=dry_run)


def _one(call: Call, counter: str, *, yes: bool, dry_run: bool) -> None:
    gates = Gates.of(call.settings, counter)
    if gates is not None:
        rebuild_gates(call, counter, gates, yes=yes, dry_run=dry_run)
        return
    region = call.settings.region
    plans = [plan(call, lane) for lane in call.settings.lanes_of(counter, region)]
    for each in plans if not call.json else ():
        call.say(f"{each.lane}: {each.now}\n  {each.says()}")
    errors = [each.error for each in plans if each.error is not None]
    if dry_run:
        if call.json:
            fields = [each.fields() for each in plans]
            call.document({"counter": counter, "region": region, "lanes": fields, "written": False})
        if errors:
            _fail(errors[0])
        return
    if len(errors) == len(plans):
        _fail(errors[0])
    if not yes:
        agree(call, f"{REBUILD} No compactor may work on these lanes meanwhile.", "Rebuild them?")
    lanes: list[dict[str, object]] = []
    try:
        failed = [error for each in plans if (error := _rebuilt(call, each.lane, lanes)) is not None]
    finally:
        if call.json:
            call.document({"counter": counter, "region": region, "lanes": lanes, "written": True})
    if failed:
        _fail(failed[0])
    if not lanes and not call.json:
        call.say("there are no segments, so there is nothing to rebuild: every change is in the tail")


def plan(call: Call, lane: Lane) -> Plan:
    """What a rebuild of the lane would do, by doing it without writing. Raises TableError."""
    item: Item | None = call.table.answer(Get(items.checkpoint_key(lane)))
    try:
        there = items.checkpoint_of(lane, item) if item is not None else None
        now = f"version {there.version:,}, total {there.total:,}, count {there.count:,}" if there else "no checkpoint"
    except DamagedItem as damage:
        now = f"damaged: {damage.why}"
    table = Unwritten(call.table)
    try:
        checkpoint = run(rebuilding(lane), table, clocks.instants(call.surroundings.clock))
    except (GaveUp, LaneDamaged, DamagedItem) as error:
        return Plan(lane, now, "fail", error=error)
    return Plan(lane, now, "write" if checkpoint else "delete" if table.writes else "nothing", checkpoint)


def _rebuilt(call: Call, lane: Lane, lanes: list[dict[str, object]]) -> LedgerError | None:
    """Rebuilds a lane, tells of it, and adds what became of it to `lanes`."""
    try:
        before: Item | None = call.table.answer(Get(items.checkpoint_key(lane)))
        checkpoint = call.run(rebuilding(lane))
    except LedgerError as error:
        lanes.append({"lane": str(lane), "error": str(error)})
        call.note(f"{lane}: {error}", "red")
        return error
    if checkpoint is None and before is None:
        return None
    lanes.append({"lane": str(lane), "total": checkpoint.total if checkpoint else None})
    if not call.json:
        said = f"total {checkpoint.total:,}" if checkpoint else "no checkpoint"
        call.say(f"rebuilt {lane}: {said}", style="green")
    return None


def _fail(error: LedgerError) -> NoReturn:
    if isinstance(error, GaveUp):
        raise Wrong("GaveUp", str(error), REBUILD, NO_ANSWER) from None
    raise error
