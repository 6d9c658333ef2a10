"""`holds`: who holds a part of a counter's limit.

Rule 1: A hold whose time is over stands there until somebody is short of it, who ends it.
"""

from ledger.checks import to_datetime
from ledger.message import time_text
from ledgerctl import show
from ledgerctl.arguments import Counter
from ledgerctl.call import Call
from ledgerctl.command import LIMITS, command


@command("holds", LIMITS)
def holds(call: Call, counter: Counter) -> None:
    """List the open holds of a limited counter, those that end first, first.

    A request, and one for each that was filed.
    """
    found = call.reader.holds(counter)
    now = to_datetime(call.surroundings.clock())
    for each in found:
        fields = {"id": each.id, "counter": counter, "amount": each.amount, "until": time_text(each.until)}
        call.document(fields | {"over": each.until <= now})
    rows = [(each.id, show.moment(each.until), f"{each.amount:+,}") for each in found]
    call.table_of(("id", "until", "amount"), rows, left=2)
    over = sum(each.until <= now for each in found)
    time_over = f", of {over:,} the time is over" if over else ""
    call.say(f"{show.counted(len(found), 'open hold')} of {counter}{time_over}")
    call.note_cost()
