"""`get`: what a counter is worth.

Rule 1: A value is always a fresh read of the table, never a cache's.
Rule 2: What the read cost is what DynamoDB says it consumed.
"""

from rich.text import Text

from ledgerctl import show
from ledgerctl.arguments import Counter
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command


@command("get", COUNTERS)
def get(call: Call, counter: Counter) -> None:
    """Show a counter: value, parts by Region, pending, cost of the read."""
    balance = call.reader.read(counter)
    consumed = call.meter.take()
    call.document(show.balance(counter, balance) | show.cost_fields(consumed))
    call.say(Text.assemble(counter, "  ", (f"{balance.value:,}", "bold cyan")))
    width = max((len(f"{part:,}") for part in balance.by_region.values()), default=0)
    for region, part in balance.by_region.items() if len(balance.by_region) > 1 else ():
        call.say(f"  {region:<16}{part:>{width},}")
    if balance.count:
        call.say(f"{show.counted(balance.count, 'change')}, {balance.pending:,} of them pending in the tail")
    else:
        lists = "`ledgerctl list` names the counters that are listed, with --scan all there are"
        call.say(f"nobody has added to it; {lists}")
    if not balance.closed:
        call.say(show.NOT_CLOSED)
    call.say(f"{show.moment(balance.as_of)}  {show.cost(consumed)}", style="dim")
