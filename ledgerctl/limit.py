"""`limit`: what a counter never passes, shown or set.

Rule 1: The settings say where counters begin, for ever; what is set is of one counter, and stands in its gate.
"""

from typing import Annotated

import typer

from ledgerctl import show
from ledgerctl.arguments import Counter, whole_number
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, command


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
    call.say(f"{counter}  {show.bounds(found)}; {where}")
