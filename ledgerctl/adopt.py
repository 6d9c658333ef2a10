"""`adopt`: fills the directory of lanes of a table that is older than it, by one scan.

Rule 1: It begins at the beginning, always. What is listed twice is there once.
Rule 2: Lanes of --region's own Region alone are written (rule 2 of ledger/lane/directory.py), each if it is not there.
Rule 3: Whatever comes during the scan, `ring` or the next compactor that scans lists.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import typer

from compactor.lanes import every_lane, list_missing
from ledger.requests import Program
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command


class Adopted(NamedTuple):
    """new: how many lanes were not in the directory. regions: of all lanes in the table."""

    new: int
    regions: set[str]


@command("adopt", TABLE)
def adopt(
    call: Call,
    anew: Annotated[bool, typer.Option("--anew", hidden=True)] = False,  # it always does, and scripts say so
) -> None:
    """Write the lanes of this Region into its directory, by one scan of the table.

    For a table that is older than its directory, once in each Region; may be cut off and run again.
    """
    home, regions = call.settings.region, call.settings.regions
    with show.bar(call.err, "scanning", None, count=False) as bar:
        done = call.run(adopting(home, bar.advance))
    others = sorted(({*regions} | done.regions) - {home})
    if call.json:
        said = {"region": home, "new": done.new, "goes_on_since": None, "other_regions": others}
        call.document(said | show.cost_fields(call.meter.take()))
        return
    call.say(f"scanned the table: {home}'s lanes are in its directory")
    call.say(f"lanes that were new there: {done.new:,}", style="green")
    call.note(show.cost(call.meter.take()))
    if others:
        call.note(f"Run it for the other Regions too: {', '.join(f'--region {each}' for each in others)}.", "yellow")
    if unnamed := sorted(done.regions - {*regions}):
        call.note(f"There are lanes of {' '.join(unnamed)}, which --regions does not name.", "yellow")


def adopting(region: str, page_seen: Callable[[], None] = lambda: None) -> Program[Adopted]:
    """Put every lane of a Region into its directory. Raises the TableErrors; those it had put by then stay."""
    found = yield from every_lane(lambda _: True, page_seen)
    new, failed = yield from list_missing(found, region)
    for error in failed.values():
        raise error
    return Adopted(len(new), {lane.region for lane in found})
