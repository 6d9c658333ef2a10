"""`rebuild`: checkpoints anew from their segments, after a restore or damage, or when a replica was made again.

Rule 1: For the lanes of one Region, that of --region.
Rule 2: It shows what it would write, and asks first.
Rule 3: What it shows is decided by the very program that writes, on a table that lets nothing be written.
Rule 4: Each lane is printed as it is done, and one that cannot be rebuilt stops no other.
Rule 5: A counter with a limit has gates instead: rebuild_gates.py. All counters: rebuild_all.py.
"""

from typing import Annotated, NoReturn

import typer

from compactor.rebuild import rebuild as rebuilding
from ledger import items
from ledger.errors import GaveUp, LedgerError
from ledger.gate.gates import Gates
from ledger.requests import Get, Item
from ledger.values import Lane
from ledgerctl import completion
from ledgerctl.arguments import Scan, Yes
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, command
from ledgerctl.failures import NO_ANSWER, Wrong
from ledgerctl.lanes import found
from ledgerctl.rebuild_all import rebuild_all
from ledgerctl.rebuild_gates import rebuild_gates
from ledgerctl.unwritten import agree, plan

REBUILD = "Stop the compactor of the Region first (docs/operations.md#stop-and-start-the-compactor)."


@command("rebuild", COMPACTION)
def rebuild(
    call: Call,
    counter: Annotated[
        str | None, typer.Argument(help="The counter's name; or --all.", autocompletion=completion.counters)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All counters, by the directory; or by --scan.")] = False,
    scan: Scan = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
) -> None:
    """Write a counter's checkpoints anew from its segments, or those of --all; asks first.

    For the lanes of this Region, after a restore or damage, or when its replica was made again. Of a limited counter:
    all its gates, from what they filed.
    """
    if (counter is None) != every:
        remedy = "`ledgerctl list` names the counters there are."
        raise Wrong("BadArguments", "Name one counter, or give --all.", remedy)
    if counter is not None:
        _one(call, counter, yes=yes, dry_run=dry_run)
    else:
        warning = f"{REBUILD} No compactor may work on these lanes meanwhile, and nobody use what has a limit."
        rebuild_all(call, found(call, scan=scan), warning, yes=yes, dry_run=dry_run)


def _one(call: Call, counter: str, *, yes: bool, dry_run: bool) -> None:
    gates = Gates.of(call.settings, counter)
    if gates is not None:
        rebuild_gates(call, counter, gates, yes=yes, dry_run=dry_run)
        return
    region = call.settings.region
    plans = [plan(call, lane) for lane in call.settings.lanes_of(counter, region)]
    for each in plans:
        call.say(f"{each.lane}: {each.now}\n  {each.says()}")
    errors = [each.error for each in plans if each.error is not None]
    if dry_run:
        fields = [each.fields() for each in plans]
        call.document({"counter": counter, "region": region, "lanes": fields, "written": False})
    if errors and (dry_run or len(errors) == len(plans)):
        _fail(errors[0])
    if dry_run:
        return
    if not yes:
        agree(call, f"{REBUILD} No compactor may work on these lanes meanwhile.", "Rebuild them?")
    lanes: list[dict[str, object]] = []
    try:
        failed = [error for each in plans if (error := _rebuilt(call, each.lane, lanes)) is not None]
    finally:
        call.document({"counter": counter, "region": region, "lanes": lanes, "written": True})
    if failed:
        _fail(failed[0])
    if not lanes:
        call.say("there are no segments, so there is nothing to rebuild: every change is in the tail")


def _rebuilt(call: Call, lane: Lane, lanes: list[dict[str, object]]) -> LedgerError | None:
    """Rebuilds a lane, prints that, and adds what became of it to `lanes`."""
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
    call.say(f"rebuilt {lane}: {f'total {checkpoint.total:,}' if checkpoint else 'no checkpoint'}", style="green")
    return None


def _fail(error: LedgerError) -> NoReturn:
    if isinstance(error, GaveUp):
        raise Wrong("GaveUp", str(error), REBUILD, NO_ANSWER) from None
    raise error
