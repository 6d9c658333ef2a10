"""`standing` and `limit`: what is left of a counter's limit, and the limit itself, shown or set.

Rule 1: What is here is certain; of other Regions it is what has come over.
Rule 2: The settings say where counters begin, for ever; what is set is of one counter, and stands in its gate.
"""

from typing import Annotated

import typer

from ledger.message import time_text
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, Counter, command, whole_number
from reader import Standing


@command("standing", LIMITS)
def standing(call: Call, counter: Counter) -> None:
    """Show a limited counter: its value, its limit, what is left and held."""
    found = call.reader.standing(counter)
    consumed = call.meter.take()
    rooms = {name: getattr(found, name) for name in ("available", "here", "moving", "held")}
    fields: dict[str, object] = {"counter": counter, "value": found.value, "count": found.count}
    fields |= {"floor": found.floor, "ceiling": found.ceiling}
    fields |= {name: {"down": room.down, "up": room.up} for name, room in rooms.items()}
    fields |= {"as_of": time_text(found.as_of), "closed": found.closed}
    call.document(fields | show.cost_fields(consumed))
    call.say(f"{counter}  {found.value:,}", style="bold cyan")
    call.say(f"{_bounds(found)}; {show.counted(found.count, 'change')}")
    sides = [(name, (room.down, room.up)) for name, room in rooms.items()]
    rows = [(name, *("-" if side is None else f"{side:,}" for side in both)) for name, both in sides]
    call.table_of(("", "down", "up"), rows)
    if not found.closed:
        call.say(show.NOT_CLOSED)
    call.note(f"{show.moment(found.as_of)}  {show.cost(consumed)}")


@command("limit", LIMITS)
def limit(
    call: Call,
    counter: Counter,
    floor: Annotated[int | None, typer.Option(help="The new floor.", parser=whole_number)] = None,
    ceiling: Annotated[int | None, typer.Option(help="The new ceiling.", parser=whole_number)] = None,
) -> None:
    """Show a counter's limit, or give it another floor, another ceiling or both.

    Exit code 1 when what counts and what is held is beyond it: then nothing is set. It may be run again.
    """
    said = {name: amount for name, amount in (("floor", floor), ("ceiling", ceiling)) if amount is not None}
    if said:
        call.ledger.set_limit(counter, floor=floor, ceiling=ceiling)
        call.document({"counter": counter, **said})
        call.say(f"{counter}  " + ", ".join(f"{name} {amount:,}" for name, amount in said.items()), style="green")
        return
    found, of = call.reader.standing(counter), call.settings.limit_of(counter)
    region = of.region if of else None
    fields = {"counter": counter, "floor": found.floor, "ceiling": found.ceiling, "region": region}
    call.document(fields | show.cost_fields(call.meter.take()))
    where = f"set in {region}" if region else "no region, so it is never set anew"
    call.say(f"{counter}  {_bounds(found)}; {where}")


def _bounds(found: Standing) -> str:
    """The limit as it is set now."""
    sides = (("floor", found.floor), ("ceiling", found.ceiling))
    return "limit: " + ", ".join(f"{name} {amount:,}" for name, amount in sides if amount is not None)
