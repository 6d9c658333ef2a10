"""`rebuild`: checkpoints anew from their segments, after a restore or damage.

Rules: for the lanes of one Region, that of --region; it shows what it would write, and asks first.
"""

from __future__ import annotations

from typing import Annotated

import typer

from compactor.recount import Recount, recount
from infra.ledgerctl.call import Call
from infra.ledgerctl.command import command
from infra.ledgerctl.failures import NO_ANSWER, Wrong
from infra.ledgerctl.values import Counter
from ledger import items
from ledger.errors import DamagedItem, GaveUp
from ledger.requests import Get, Item, Program
from ledger.values import Lane

REBUILD = "Stop the compactor of the Region first (docs/operations.md#stop-and-start-the-compactor)."


@command("rebuild")
def rebuild(
    call: Call,
    counter: Counter,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
) -> None:
    """Write a counter's checkpoints anew from its segments; asks first.

    For the lanes of this Region, after a restore or damage.
    """
    region = call.settings.region
    plans = [(lane, *call.run(plan(lane))) for lane in call.settings.lanes_of(counter, region)]
    if not call.json:
        for lane, now, sums in plans:
            call.say(f"{lane}: {now}")
            would = f"a checkpoint with total {sums.total:,}, count {sums.count:,}" if sums.version else "no checkpoint"
            call.say(f"  its segments give {would}")
    if dry_run:
        if call.json:
            fields = [
                {"lane": str(lane), "now": now, "total": sums.total, "count": sums.count} for lane, now, sums in plans
            ]
            call.document({"counter": counter, "region": region, "lanes": fields, "written": False})
        return
    if not yes:
        call.note(f"{REBUILD} No compactor may work on these lanes meanwhile.", "yellow")
        try:
            agreed = typer.confirm("Rebuild them?", err=True)
        except typer.Abort:
            agreed = False
        if not agreed:
            raise Wrong("NotConfirmed", "Nothing was rebuilt.", "Answer y, or say --yes where nobody can answer.")
    try:
        totals = call.compactor.rebuild(counter)
    except GaveUp as error:
        raise Wrong("GaveUp", str(error), REBUILD, NO_ANSWER) from None
    if call.json:
        rebuilt = [{"lane": str(lane), "total": total} for lane, total in totals.items()]
        call.document({"counter": counter, "region": region, "lanes": rebuilt, "written": True})
        return
    for lane, total in totals.items():
        call.say(f"rebuilt {lane}: total {total:,}", style="green")
    if not totals:
        call.say("there are no segments, so there is nothing to rebuild: every change is in the tail")


def plan(lane: Lane) -> Program[tuple[str, Recount]]:
    """What stands there now, in words, and what a rebuild would write. Raises LaneDamaged, DamagedItem."""
    item: Item | None = yield Get(items.checkpoint_key(lane))
    try:
        there = items.checkpoint_of(lane, item) if item is not None else None
        now = f"version {there.version:,}, total {there.total:,}, count {there.count:,}" if there else "no checkpoint"
    except DamagedItem as damage:
        now = f"damaged: {damage.why}"
    return now, (yield from recount(lane))
