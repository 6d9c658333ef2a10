"""`standing`: what is left of a counter's limit.

Rule 1: What is here is certain; of other Regions it is what has come over.
"""

from ledger.message import time_text
from ledgerctl import show
from ledgerctl.arguments import Counter
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, command

ROOMS = ("available", "here", "moving", "held")


@command("standing", LIMITS)
def standing(call: Call, counter: Counter) -> None:
    """Show a limited counter: its value, its limit, what is left and held."""
    found = call.reader.standing(counter)
    consumed = call.meter.take()
    rooms = dict(zip(ROOMS, (found.available, found.here, found.moving, found.held), strict=True))
    fields: dict[str, object] = {"counter": counter, "value": found.value, "count": found.count}
    fields |= {"floor": found.floor, "ceiling": found.ceiling}
    fields |= {name: {"down": room.down, "up": room.up} for name, room in rooms.items()}
    fields |= {"as_of": time_text(found.as_of), "closed": found.closed}
    call.document(fields | show.cost_fields(consumed))
    call.say(f"{counter}  {found.value:,}", style="bold cyan")
    call.say(f"{show.bounds(found)}; {show.counted(found.count, 'change')}")
    rows = [(name, *map(_amount, (room.down, room.up))) for name, room in rooms.items()]
    call.table_of(("", "down", "up"), rows)
    if not found.closed:
        call.say(show.NOT_CLOSED)
    call.note(f"{show.moment(found.as_of)}  {show.cost(consumed)}")


def _amount(amount: int | None) -> str:
    return "-" if amount is None else f"{amount:,}"
