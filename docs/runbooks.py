"""What an operator runs by hand; docs/operations/runbooks.md says when.

`python -i docs/runbooks.py` in a clone, and call it.
"""

from ledger import Delta, Ledger, Settings
from ledger.core import tokens
from ledger.core.clocks import instants, wall_clock
from ledger.core.items import delta_pk, entries_of, is_pack
from ledger.core.requests import Delete, Get, Key
from ledger.core.running import run
from ledger.core.values import Lane
from ledger.gate.gates import Gates
from ledger.gate.move import free
from ledger.tables.dynamo import DynamoTable
from reader.history import entries, history


def move(unread: Lane, settings: Settings) -> int:
    """Add each change where it belongs; repeated, it counts once. How many."""
    table, ledger = DynamoTable.of(settings, region=unread.region), Ledger(settings)
    read_max = settings.read_time_max_ms
    program = history(unread, consistent=True, read_time_max_ms=read_max)
    known = unread.region in settings.regions
    region = unread.region if known else settings.region
    moved = 0
    for entry in entries(unread, *run(program, table, instants(wall_clock))):
        lane = settings.lane_for(unread.counter, entry.token, region)
        ledger.apply(Delta(lane, entry.token, entry.change))
        moved += 1
    return moved


def move_pack(lane: Lane, name: str, settings: Settings) -> None:
    """Add each change where it belongs, then delete the pack named so."""
    if not is_pack(name):
        raise ValueError(f"{name} is a delta, and stays")
    table, ledger = DynamoTable.of(settings, region=lane.region), Ledger(settings)
    pack = Key(delta_pk(lane), name)
    for token, change in entries_of(lane, table.answer(Get(pack))):
        text = tokens.from_bytes(token)
        home = settings.lane_for(lane.counter, text, lane.region)
        ledger.apply(Delta(home, text, change))
    table.answer(Delete(pack))


def end_holds(counter: str, settings: Settings) -> None:
    """End every hold of a limited counter whose time is over, in all Regions."""
    table, now = DynamoTable.of(settings), instants(wall_clock)
    gates = Gates.limited(settings, counter, "end_holds")
    for lane in gates.lanes:
        run(free(gates, run(gates.read(lane), table, now)), table, now)
