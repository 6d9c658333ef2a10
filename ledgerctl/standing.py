"""`standing` and `holds`: what is left of a counter's limit, and who holds a part of it.

Rule 1: What is here is certain; of other Regions it is what has come over.
Rule 2: A hold whose time is over stands there until somebody is short of it, who ends it.
"""

from ledger.checks import to_datetime
from ledger.message import time_text
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, command
from ledgerctl.get import NOT_CLOSED, Counter
from reader import Room, Standing

ROOMS = ("available", "here", "moving", "held")


@command("standing", LIMITS)
def standing(call: Call, counter: Counter) -> None:
    """Show a limited counter: its value, its limit, what is left and held."""
    found = call.reader.standing(counter)
    consumed = call.meter.take()
    if call.json:
        call.document(_fields(counter, found) | show.cost_fields(consumed))
        return
    call.say(f"{counter}  {found.value:,}", style="bold cyan")
    call.say(f"{bounds(found)}; {show.counted(found.count, 'change')}")
    rows = [(name, *map(_amount, (room.down, room.up))) for name, room in _rooms(found)]
    call.out.print(show.table(("", "down", "up"), rows))
    if not found.closed:
        call.say(NOT_CLOSED)
    call.note(f"{show.moment(found.as_of)}  {show.cost(consumed)}")


@command("holds", LIMITS)
def holds(call: Call, counter: Counter) -> None:
    """List the open holds of a limited counter, those that end first, first.

    A request, and one for each that was filed.
    """
    found = call.reader.holds(counter)
    now = to_datetime(call.surroundings.clock())
    if call.json:
        for each in found:
            fields = {"id": each.id, "counter": counter, "amount": each.amount, "until": time_text(each.until)}
            call.document(fields | {"over": each.until <= now})
        return
    if found:
        rows = [(each.id, show.moment(each.until), show.signed(each.amount)) for each in found]
        call.out.print(show.table(("id", "until", "amount"), rows, left=2))
    over = sum(each.until <= now for each in found)
    call.say(
        f"{show.counted(len(found), 'open hold')} of {counter}" + (f", of {over:,} the time is over" if over else "")
    )
    call.note(show.cost(call.meter.take()))


def bounds(found: Standing) -> str:
    """The limit as it is set now."""
    said = (("floor", found.floor), ("ceiling", found.ceiling))
    return "limit: " + ", ".join(f"{name} {amount:,}" for name, amount in said if amount is not None)


def _amount(amount: int | None) -> str:
    return "-" if amount is None else f"{amount:,}"


def _rooms(found: Standing) -> list[tuple[str, Room]]:
    return list(zip(ROOMS, (found.available, found.here, found.moving, found.held), strict=True))


def _fields(counter: str, found: Standing) -> dict[str, object]:
    limit = {"floor": found.floor, "ceiling": found.ceiling}
    rooms = {name: {"down": room.down, "up": room.up} for name, room in _rooms(found)}
    fields: dict[str, object] = {"counter": counter, "value": found.value, "count": found.count, **limit, **rooms}
    return fields | {"as_of": time_text(found.as_of), "closed": found.closed}
