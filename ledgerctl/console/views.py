"""What the page asks for: by path, a function from a call, a counter's name and the other
parameters to an answer.

Rule 1: The paths of the HTTP API answer its fields, and further ones (docs/http-api.md).
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from compactor.inspection import lag as lag_of
from ledger.client.message import time_of, time_text
from ledger.core.checks import AHEAD_MAX_MS, to_datetime
from ledger.core.errors import InvalidInput, LedgerError, shown
from ledger.core.period import zone_of
from ledger.core.period_name import parted
from ledger.core.running import or_error
from ledgerctl.call import Call
from ledgerctl.compaction import to_do
from reader import Entry, Place
from reader.checks import PAGE_ENTRIES_MAX
from reader.periods import asked_for
from reader.rules import Rules

NAMES, CHANGES, STEPS_MAX = 50, 20, 1_000
EPOCH = to_datetime(0)

Asked = Mapping[str, str]
Answer = dict[str, Any]


def counters(call: Call, counter: str, asked: Asked) -> Answer:
    """A balance; or a page of the names that begin with a prefix, with their balances."""
    if counter:
        plan, (base, span) = call.settings.plan(counter), parted(counter)
        said: Answer = {"counter": counter, "limited": plan.limit is not None}
        if span is not None and plan.keep is not None:
            said |= {"base": base, "every": span.unit, "anchor": span.anchor}
            if span.every > 1:  # of windows, one tells where the others begin
                said |= {"every": f"{span.every}{span.unit[0]}", "begins": span.start.isoformat()}
        return {**plain(call.reader.read(counter)), **said}
    names: list[str] = []
    bucket, _, name = asked["after"].partition(".")
    after = Place(int(bucket), name) if bucket.isdecimal() else None
    while len(names) < NAMES:  # a page of the directory may have few
        page = call.reader.counters(asked["prefix"], after=after, limit=NAMES)
        names += page.counters
        after = page.next
        if after is None:
            break
    rules = Rules(call.settings, 0, consistent=True, clock=call.surroundings.clock)
    found: Any = or_error(call.on_table, rules.balances(names)) if names else {}
    if isinstance(found, LedgerError):  # one that cannot be read ends that, and hides no other
        found = {name: or_error(call.reader.read, name) for name in names}
    following = None if after is None else f"{after.bucket}.{after.counter}"
    rows = [plain(found[name]) | {"counter": name} for name in names]
    return {"counters": names, "next": following, "values": rows}


def standing(call: Call, counter: str, asked: Asked) -> Answer:
    return {**plain(call.reader.standing(counter)), "counter": counter}


def series(call: Call, counter: str, asked: Asked) -> Answer:
    since, every, zone = time_of(asked["since"]), asked["every"], asked["zone"]
    until = time_of(asked["until"]) if asked["until"] else None
    given: Any = {"since": since, "until": until, "every": every, "zone": zone}
    found = call.reader.series(counter, **given, limit=STEPS_MAX)
    return {**plain(found), "counter": counter}


def periods(call: Call, counter: str, asked: Asked) -> Answer:
    zone = zone_of(asked["zone"] or None)
    begins = _given(asked, "begins", datetime.fromisoformat, None)
    period = asked_for(
        call.settings,
        counter,
        asked["every"],
        asked["zone"],
        _given(asked, "anchor", int, 1),
        begins and begins.replace(tzinfo=zone),
    )
    rows = call.reader.periods(counter, period)
    return {"periods": [plain(each.standing or {}) | plain(each) for each in rows]}


def changes(call: Call, counter: str, asked: Asked) -> Answer:
    """The last changes, the newest first. count: how many there are."""
    enough = min(_given(asked, "count", int, CHANGES), CHANGES)
    until, width = to_datetime(call.surroundings.clock() + AHEAD_MAX_MS), timedelta(hours=1)
    found: deque[Entry] = deque()
    while len(found) < enough and until > EPOCH:
        since, after = max(EPOCH, until - width), None
        part: deque[Entry] = deque(maxlen=enough)
        while True:
            page = call.reader.history_page(
                counter, since=since, until=until, after=after, limit=PAGE_ENTRIES_MAX
            )
            part += page.entries
            after = page.next
            if after is None:
                break
        found.extendleft(reversed(part))
        until, width = since, 8 * width
    return {"entries": [plain(entry) for entry in reversed(found)][:enough]}


def _given(asked: Asked, name: str, read: Callable[[str], Any], otherwise: Any) -> Any:
    """What a parameter says, as `read` takes it; `otherwise` where there is none.

    Raises InvalidInput.
    """
    try:
        return read(asked[name]) if asked[name] else otherwise
    except ValueError as wrong:
        raise InvalidInput(f"{name}={shown(asked[name])} cannot be read: {wrong}.") from None


def holds(call: Call, counter: str, asked: Asked) -> Answer:
    now = to_datetime(call.surroundings.clock())
    rows = [
        {"amount": held.amount, "until": time_text(held.until), "over": held.until <= now}
        for held in call.reader.holds(counter)
    ]
    return {"holds": rows}


def lag(call: Call, counter: str, asked: Asked) -> Answer:
    """What waits in each lane; of a limited counter nothing ever does."""
    its, now_ms = call.settings, call.surroundings.clock()
    plan, rows = its.plan(counter), []
    for lane in plan.lanes() if plan.limit is None else ():
        found = or_error(call.run, lag_of(lane), lane.region)
        due = [] if isinstance(found, LedgerError) else to_do(found, its, now_ms)
        rows.append(plain(found) | {"lane": str(lane), "to_do": due})
    return {"lanes": rows}


VIEWS: Mapping[str, Callable[[Call, str, Asked], Answer]] = {
    f"/{view.__name__}": view for view in (counters, standing, series, periods, changes, holds, lag)
}


def plain(value: Any) -> Any:
    """A value of the library for JSON, by its fields."""
    match value:
        case datetime():
            return time_text(value)
        case LedgerError():
            return {"error": str(value)}
        case tuple():
            return [plain(each) for each in value]
        case _ if not is_dataclass(value):
            return value
    names = (field.name for field in fields(value) if field.name != "cost")
    return {name: plain(getattr(value, name)) for name in names}
