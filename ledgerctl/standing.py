"""`standing`, `limit` and `periods`: what is left of a counter's limit; the limit, shown or set;
and its periods.

Rule 1: The numbers of this Region are certain; those of other Regions are what has replicated.
Rule 2: The settings say with which limit counters begin, for ever. A limit that `limit` sets is of
one counter, and stands in its gate.
"""

from typing import Annotated

import typer

from ledger.client.message import time_text
from ledger.core.period import zone_of
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Counter, command, whole_number
from reader import Standing
from reader.periods import asked_for


@command("standing")
def standing(call: Call, counter: Counter) -> None:
    """Show a limited counter: its value, its limit, and what is left and held."""
    found = call.reader.standing(counter)
    consumed = call.meter.take()
    rooms = {name: getattr(found, name) for name in ("available", "here", "moving", "held")}
    fields: dict[str, object] = {"counter": counter, "value": found.value, "count": found.count}
    fields |= {"floor": found.floor, "ceiling": found.ceiling}
    fields |= {name: {"down": room.down, "up": room.up} for name, room in rooms.items()}
    fields |= {"as_of": time_text(found.as_of), "closed": found.closed}
    call.document(fields | _carried(found) | show.cost_fields(consumed))
    call.say(f"{counter}  {found.value:,}", style="bold cyan")
    call.say(f"{_bounds(found)}; {show.counted(found.count, 'change')}")
    sides = [(name, (room.down, room.up)) for name, room in rooms.items()]
    rows = [
        (name, *("-" if side is None else f"{side:,}" for side in both)) for name, both in sides
    ]
    call.table_of(("", "down", "up"), rows)
    _say_carried(call, counter, found)
    if not found.closed:
        call.say(show.NOT_CLOSED)
    call.note(f"{show.moment(found.as_of)}  {show.cost(consumed)}")


@command("limit")
def limit(
    call: Call,
    counter: Counter,
    floor: Annotated[int | None, typer.Option(help="The new floor.", parser=whole_number)] = None,
    ceiling: Annotated[
        int | None, typer.Option(help="The new ceiling.", parser=whole_number)
    ] = None,
) -> None:
    """Show a counter's limit, or give it another floor, another ceiling or both.

    If its value and its holds are beyond the new limit, nothing is set and the exit code is 1. Run
    it again after any failure.
    """
    said = {
        name: amount
        for name, amount in (("floor", floor), ("ceiling", ceiling))
        if amount is not None
    }
    if said:
        call.ledger.set_limit(counter, floor=floor, ceiling=ceiling)
        call.document({"counter": counter, **said})
        call.say(
            f"{counter}  " + ", ".join(f"{name} {amount:,}" for name, amount in said.items()),
            style="green",
        )
        return
    found, of = call.reader.standing(counter), call.settings.limit_of(counter)
    region = of.region if of else None
    fields = {"counter": counter, "floor": found.floor, "ceiling": found.ceiling, "region": region}
    call.document(fields | show.cost_fields(call.meter.take()))
    where = f"set in {region}" if region else "no region, so it never changes"
    call.say(f"{counter}  {_bounds(found)}; {where}")


@command("periods")
def periods(
    call: Call,
    base: Annotated[str, typer.Argument(help="The counter's name without its period.")],
    every: Annotated[
        str, typer.Option(help="What a period is: year, month, week, day, hour; or 5h, 30d.")
    ] = "month",
    zone: Annotated[str, typer.Option(help="The time zone of its calendar.")] = "UTC",
    anchor: Annotated[int, typer.Option(help="For months: the day on which each begins.")] = 1,
    begins: Annotated[
        str | None,
        typer.Option(help="For 5h or 30d: when one of them begins; default: as the settings say."),
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="How many periods, up to the current one.")] = 12,
) -> None:
    """Show the last periods of a counter: value, limit and what is left."""
    first = show.time_typed(begins, zone_of(zone))
    period = asked_for(call.settings, base, every, zone, anchor, first)
    found = call.reader.periods(base, period, last)
    rows = []
    for each in found:
        floor, ceiling = (
            getattr(each.standing, "floor", None),
            getattr(each.standing, "ceiling", None),
        )
        left = (
            (each.standing.available.down, each.standing.available.up)
            if each.standing
            else (None, None)
        )
        times = {"start": time_text(each.start), "end": time_text(each.end)}
        fields = {"counter": each.counter, **times, "value": each.value, "count": each.count}
        fields |= {
            "floor": floor,
            "ceiling": ceiling,
            "available": {"down": left[0], "up": left[1]},
        }
        call.document(fields | _carried(each.standing))
        numbers = (
            "-" if number is None else f"{number:,}"
            for number in (each.value, floor, ceiling, *left)
        )
        rows.append((each.counter, *numbers))
    call.table_of(("counter", "value", "floor", "ceiling", "left down", "left up"), rows)
    for each in found:
        _say_carried(call, each.counter, each.standing)
    call.note_cost()


def _bounds(found: Standing) -> str:
    """The limit as it is set now."""
    sides = (("floor", found.floor), ("ceiling", found.ceiling))
    return "limit: " + ", ".join(
        f"{name} {amount:,}" for name, amount in sides if amount is not None
    )


def _carried(found: Standing | None) -> dict[str, int]:
    """What was carried over, without what is 0."""
    amounts = {"carried": found.carried, "took": found.took} if found else {}
    return {name: amount for name, amount in amounts.items() if amount}


def _say_carried(call: Call, counter: str, found: Standing | None) -> None:
    said = {"carried": "passed on to the next period", "took": "came from the period before"}
    for name, amount in _carried(found).items():
        call.say(f"{counter}: {amount:,} {said[name]}")
