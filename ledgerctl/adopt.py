"""`adopt`: fills the directory of lanes of a table that is older than it, by one scan.

Rule 1: A page at a time: first its lanes are in the directory, then the place behind it is written, so that a run that
was cut off repeats a page at most. When there are no more pages the place is deleted.
Rule 2: Lanes of --region's own Region alone are written (rule 2 of ledger/directory.py), each if it is not there.
Rule 3: Whatever comes during the scan, `ring` lists.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import typer

from compactor.lanes import by_lane
from ledger import directory
from ledger.checks import to_datetime
from ledger.decoding import decoded, integer, text_of
from ledger.errors import DamagedItem, LedgerError
from ledger.gate import items as gates
from ledger.message import time_text
from ledger.paging import Pages
from ledger.requests import (
    AlreadyThere,
    Delete,
    Get,
    GetMany,
    Instant,
    Item,
    Key,
    KeyPage,
    Now,
    Program,
    Put,
    PutMany,
    Scan,
    keyed,
)
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import DATA, INTERRUPTED, Wrong, told

BEGIN_ANEW = "--anew begins anew: what is in the directory stays there."


@dataclass(slots=True)
class Adopted:
    """began_ms: of the run that began the scan. after: where this run went on. new: lanes that were not in the
    directory, in all its runs. pages: of this run. regions: of the lanes that it met."""

    began_ms: int
    after: Key | None = None
    new: int = 0
    pages: int = 0
    regions: set[str] = field(default_factory=set)


@command("adopt", TABLE)
def adopt(
    call: Call,
    anew: Annotated[
        bool, typer.Option("--anew", help="Begin anew, and not where a run that was cut off stopped.")
    ] = False,
) -> None:
    """Write the lanes of this Region into its directory, by one scan of the table.

    For a table that is older than its directory, once in each Region; may be cut off and run again.
    """
    region = call.settings.region
    went = Adopted(0)
    try:
        if anew:
            call.table.answer(Delete(place_key(region)))
        with show.bar(call.err, "scanning", None, count=False) as bar:

            def page_seen(now: Adopted) -> None:
                nonlocal went
                went = now
                bar.advance()

            done = call.run(adopting(region, page_seen))
    except DamagedItem as damage:
        raise Wrong("DamagedItem", f"The place of an earlier run is damaged: {damage}", BEGIN_ANEW, DATA) from None
    except (LedgerError, KeyboardInterrupt) as failure:
        raise _cut_off(call, failure, went) from None
    _tell(call, done)


def _tell(call: Call, done: Adopted) -> None:
    home, regions = call.settings.region, call.settings.regions
    others = sorted(({*regions} | done.regions) - {home})
    since = time_text(to_datetime(done.began_ms)) if done.after else None
    if call.json:
        said = {"region": home, "new": done.new, "pages": done.pages, "goes_on_since": since, "other_regions": others}
        call.document(said | show.cost_fields(call.meter.take()))
        return
    went_on = f", from where the run of {since} stopped" if since else ""
    call.say(f"scanned {show.counted(done.pages, 'page')}{went_on}: {home}'s lanes are in its directory")
    call.say(f"lanes that were new there: {done.new:,}", style="green")
    call.note(show.cost(call.meter.take()))
    if others:
        call.note(f"Run it for the other Regions too: {', '.join(f'--region {each}' for each in others)}.", "yellow")
    if unnamed := sorted(done.regions - {*regions}):
        call.note(f"There are lanes of {' '.join(unnamed)}, which --regions does not name.", "yellow")


def _cut_off(call: Call, failure: BaseException, went: Adopted) -> Wrong:
    said = f"After {show.counted(went.pages, 'page')}, lanes that were new in the directory: {went.new:,}."
    remedy = "Run it again: it goes on where it stopped, and what is written twice is there once."
    if isinstance(failure, Exception):
        wrong = told(failure, call.where)
        return Wrong(wrong.kind, f"{wrong.message} {said}", f"{wrong.remedy}\n{remedy}".strip(), wrong.code)
    return Wrong("Interrupted", f"Interrupted. {said}", remedy, INTERRUPTED)


def place_key(region: str) -> Key:
    """Where a scan that was cut off goes on (docs/data-model.md#directory)."""
    return Key(f"sweep#{region}", "adopt")


def adopting(region: str, page_seen: Callable[[Adopted], None] = lambda _: None) -> Program[Adopted]:
    """Put every lane of a Region into its directory. Raises DamagedItem (the place) and the TableErrors."""
    found: Adopted = yield from _begun(region)
    page_seen(found)
    pages = Pages(Scan(found.after))
    while pages.more:
        page: KeyPage = yield from pages.read()
        lanes = {lane for lane, _, _ in by_lane(page.keys)}
        lanes |= {lane for key in page.keys if (lane := gates.lane_of(key)) is not None}
        found.regions |= {lane.region for lane in lanes}
        found.new += yield from _put(sorted(lane for lane in lanes if lane.region == region))
        found.pages += 1
        if pages.more:
            yield Put(_place(region, found, page.last))
        page_seen(found)
    yield Delete(place_key(region))
    return found


def _begun(region: str) -> Program[Adopted]:
    key = place_key(region)
    item: Item | None = yield Get(key)
    if item is None:
        now: Instant = yield Now()
        return Adopted(now.wall_ms)

    def read() -> Adopted:
        after = Key(text_of(item, "after_pk"), text_of(item, "after_sk"))
        return Adopted(integer(item, "began_ms"), after, integer(item, "lanes"))

    return decoded(item, key.pk, read, key.sk)


def _place(region: str, found: Adopted, last: Key | None) -> Item:
    assert last is not None
    numbers = {"began_ms": {"N": str(found.began_ms)}, "lanes": {"N": str(found.new)}}
    return keyed(place_key(region), after_pk={"S": last.pk}, after_sk={"S": last.sk}, **numbers)


def _put(lanes: list[Lane]) -> Program[int]:
    """How many of them were not in the directory."""
    if not lanes:
        return 0
    there: tuple[Item | None, ...] = yield GetMany(tuple(map(directory.key_of, lanes)), consistent=False)
    missing = [directory.item_of(lane) for lane, item in zip(lanes, there, strict=True) if item is None]
    answers: tuple[AlreadyThere | LedgerError | None, ...] = (yield PutMany(tuple(missing))) if missing else ()
    for answer in answers:
        if isinstance(answer, LedgerError):
            raise answer
    return sum(answer is None for answer in answers)
