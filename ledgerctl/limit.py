"""`limit show` and `limit set`: what a counter never passes.

Rule 1: The settings say where counters begin, for ever; what is set is of one counter, and stands in its gate.
"""

from typing import Annotated

import typer

from ledgerctl import show
from ledgerctl.again import whole_number
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, app, command
from ledgerctl.get import Counter
from ledgerctl.standing import bounds
from ledgerctl.usage import Program

limits = typer.Typer(cls=Program, no_args_is_help=True, help="Show or set what a counter never passes.")
app.add_typer(limits, name="limit", rich_help_panel=LIMITS)


@command("show", "", of=limits)
def show_(call: Call, counter: Counter) -> None:
    """Show a counter's limit, as it is set now."""
    found = call.reader.standing(counter)
    limit = call.settings.limit_of(counter)
    region = limit.region if limit else None
    if call.json:
        fields = {"counter": counter, "floor": found.floor, "ceiling": found.ceiling, "region": region}
        call.document(fields | show.cost_fields(call.meter.take()))
        return
    first = f"; set in {region}" if region else "; no region, so it is never set anew"
    call.say(f"{counter}  {bounds(found)}{first}")


@command("set", "", of=limits)
def set_(
    call: Call,
    counter: Counter,
    floor: Annotated[int | None, typer.Option(help="The new floor.", parser=whole_number)] = None,
    ceiling: Annotated[int | None, typer.Option(help="The new ceiling.", parser=whole_number)] = None,
) -> None:
    """Give one counter another floor, another ceiling or both.

    Exit code 1 when what counts and what is held is beyond it: then nothing is set. It may be run again.
    """
    call.ledger.set_limit(counter, floor=floor, ceiling=ceiling)
    said = {name: amount for name, amount in (("floor", floor), ("ceiling", ceiling)) if amount is not None}
    if call.json:
        call.document({"counter": counter, **said})
        return
    call.say(f"{counter}  " + ", ".join(f"{name} {amount:,}" for name, amount in said.items()), style="green")
