"""The lines that `make scale` prints, part by part."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lab.scale.dollars import AT_ONCE, CORE_MB, GB, WAIT_S, Finding, as_units, cpu_ms, finding, requests
from lab.scale.goal import Goal
from lab.scale.keeping import Keeping
from lab.scale.lean import LOOK
from lab.scale.lived import Lived
from lab.scale.loads import Load
from lab.scale.million import Million
from lab.scale.model import Told
from lab.scale.months import Month
from lab.scale.region import WORK_BATCH
from ledgerctl.bill import PRICES, SQS_REQUEST
from service import observe

DAYS = 365 / 12
COMPACTS = 10
"""workConcurrency of serverless.yml."""

ACCOUNT, FLIGHT, TABLE_UNITS = 1_000, 120_000, 40_000
"""Quotas before AWS raises them: functions of an account at once, messages of a queue in flight, units of a table."""

Client = Mapping[str, float]


def million(each: Million, client_s: Client, ring_mb: Sequence[tuple[int, float]], compact_mb: float) -> Iterator[str]:
    yield f"{each.lanes:,} LANES AT ONCE, a change every {1 / each.rate:,.0f} s each: the shipped functions"
    yield f"each changes once, then any for {each.seconds:,.0f} s; {each.shards} shards of the stream, a process each"
    yield f"{'':<58}{'each once':>12}{'then':>12}"
    both = each.first, each.then
    for name, figure in FIGURES.items():
        yield f"{name:<58}" + "".join(f"{figure(lived):12.4f}" for lived in both)
    for function in GB:
        own = (lived.cpu_s[function] * 1_000 / lived.changes for lived in both)
        yield f"{function + ': CPU a change, ms, without boto3':<58}" + "".join(f"{ms:12.4f}" for ms in own)
        whole = (cpu_ms(lived, function, client_s) for lived in both)
        yield f"{function + ': CPU a change, ms, with boto3':<58}" + "".join(f"{ms:12.4f}" for ms in whole)
    yield f"most messages that waited {each.longest:,}; most lanes that a process of ring knew {each.known:,}"
    yield f"tails at the end: {each.tails}"
    for lanes, mb in ring_mb:
        yield f"memory of ring's objects after {lanes:>8,} lanes in one process {mb:8.1f} MB"
    yield f"memory of compact's objects, 8 lanes with 5,000 deltas each {compact_mb:9.1f} MB"


FIGURES: dict[str, Callable[[Lived], float]] = {
    "messages a change": lambda lived: lived.messages / lived.changes,
    "SQS requests a change": lambda lived: lived.sqs_requests / lived.changes,
    "looks a change that were enough": lambda lived: lived.looks / lived.changes,
    "visits a change": lambda lived: lived.visits / lived.changes,
    "requests of ring to the table, a change": lambda lived: lived.cost("ring").requests / lived.changes,
    "requests of compact to the table, a change": lambda lived: lived.cost("compact").requests / lived.changes,
    "write units a change": lambda lived: lived.write_units,
    "  of these for the directory, written": lambda lived: lived.cost(kind="lane").write_units / lived.changes,
    "read units a change": lambda lived: lived.cost().read_units / lived.changes,
    "  of these for looks": lambda lived: lived.cost(kind=LOOK).read_units / lived.changes,
    "  of these for the directory, read": lambda lived: lived.cost(kind="lane").read_units / lived.changes,
}


def lives(named: Mapping[str, Lived]) -> Iterator[str]:
    yield "LIVES, played from an empty table on"
    parts_named = "".join(f"{name:>8}" for name in ("put", "commit", "note", "delete"))
    yield f"{'':<26}{'write units':>12}{parts_named}{'read units':>12}{'looks':>8}  tails"
    for name, lived in named.items():
        parts = [
            lived.cost(operation="PutItem", kind="delta"),
            lived.cost(operation="TransactWriteItems"),
            lived.cost(operation="PutItem", kind="fold"),
            lived.cost(operation="BatchExecuteStatement", kind="delta"),
        ]
        units = "".join(f"{part.write_units / lived.changes:8.3f}" for part in parts)
        reads = lived.cost().read_units / lived.changes, lived.cost(kind=LOOK).read_units / lived.changes
        yield f"{name:<26}{lived.write_units:12.4f}{units}{reads[0]:12.4f}{reads[1]:8.4f}  {lived.tails}"


def finding_of(each: Million, rare: Lived, client_s: Client) -> Iterator[str]:
    found = finding(each.then, client_s)
    yield "FINDING, as write units of a change (a dollar's worth of them), a lane with a change every 100 s"
    for name, dollars in parts_of(found).items():
        yield f"{name:<58}{as_units(dollars):12.4f}"
    alone = each.then.messages * (1 - 1 / 10) * SQS_REQUEST / each.then.changes * 1e6
    yield f"{'more, were each message received alone':<58}{as_units(alone):12.4f}"
    yield from sweeping(each, rare)


def parts_of(found: Finding) -> dict[str, float]:
    return {
        "messages: SQS": found.sqs,
        "looks": found.looks,
        "directory": found.directory,
        "calls of ring and compact": sum(found.calls.values()),
        "all that is counted": found.counted,
        "time of ring, by this computer's CPU": found.time["ring"],
        "time of compact, folds and cleans in it": found.time["compact"],
        "all": found.dollars,
    }


def sweeping(each: Million, rare: Lived) -> Iterator[str]:
    """Of a pass a day: what `sweep` asks for, on a bucket of the million; its messages' looks, from lanes that hardly
    change."""
    lanes = each.swept.metrics[observe.LANES_SWEPT]
    pages = each.swept.cost("sweep").read_units / lanes
    look = rare.cost("compact", kind=LOOK).read_units / rare.messages
    requests_ = each.swept.requests["send"] / lanes + 2 / 10
    month = DAYS * ((pages + look) * PRICES.read + requests_ * SQS_REQUEST * 1e6)
    yield f"sweep, each lane once a day: {pages:.3f} read units, a look of {look:.2f}, {requests_:.2f} requests of SQS:"
    yield f"  {month:.2f} dollars a month for a million lanes, without Lambda's time"


def loads(told: Iterable[tuple[Load, Told]]) -> Iterator[str]:
    yield "MODEL OF A LANE: 75 s from a ring to its message, units by the sizes of real items"
    yield f"{'changes/s, load':<46}messages  wasted   writes   reads  (looks)  tail mean   p50   p99  p99.9    max"
    for load, each in told:
        wasted = each.looks / max(1, each.looks + each.visits)
        units = f"{each.writes('commit', 'note'):9.4f}{each.reads():8.4f}  ({each.reads('look'):.3f})"
        tails = each.tails
        lengths = "".join(f"{tails.quantile(share):7,}" for share in (0.5, 0.99, 0.999)) + f"{tails.longest:7,}"
        yield (
            f"{load.rate * load.each:9g} {load.name:<36}{each.all_messages / each.changes:8.5f}{wasted:8.1%}"
            f"{units}{tails.mean:10,.1f}{lengths}"
        )


def months(rows: Iterable[Month]) -> Iterator[str]:
    yield "DOLLARS A MONTH, without puts and deletes; before: marks and their visits, which is arithmetic"
    names = "".join(f"{name:>10}" for name in ("before", "now", "finding", "commits", "reads"))
    yield f"{'':<28}{names}{'puts, deletes':>15}{'units a change':>16}"
    for row in rows:
        of_now = "".join(f"{part:10,.2f}" for part in (row.finding, row.commits, row.reads))
        beside = f"{row.puts_and_deletes:15,.2f}{row.units:16.3f}"
        yield f"{row.name:<28}{row.before:10,.2f}{row.now:10,.2f}{of_now}{beside}"


def keeping() -> Iterator[str]:
    yield "DELETING OR KEEPING, dollars for a million changes"
    for regions in (1, 2):
        for size in (1, 38, 100, 400):
            each = Keeping(size, regions)
            what = f"{'single deltas' if size == 1 else f'packs of {size}'}, Regions: {regions}"
            prices = f"delete {each.deletes:7.4f}  a month {each.month:7.4f}"
            even = f"an item after {each.months:4.1f} months, an even load after {each.months_of_load:4.1f}"
            yield f"{what:<32}{prices}  even: {even}"


def ceilings(each: Million, client_s: Client) -> Iterator[str]:
    """What a Region's `compact` serves, and what would be next."""
    cpu_s = cpu_ms(each.then, "compact", client_s) / 1_000 * each.then.changes / each.then.messages
    waits_s = sum(requests(each.then, "compact").values()) / each.then.messages * WAIT_S / AT_ONCE["compact"]
    seconds = cpu_s * CORE_MB / (GB["compact"] * 1_024) + waits_s
    minute, units = 60 / seconds, each.then.write_units
    yield "LANES A MINUTE: no ceiling in the design. What would be the next one:"
    yield f"  a message takes compact {seconds * 1_000:.0f} ms, so one at once serves {minute:,.0f} a minute,"
    yield f"  {COMPACTS} (a parameter) {COMPACTS * minute:,.0f}, an account's {ACCOUNT:,} {ACCOUNT * minute:,.0f}"
    yield f"  in flight {FLIGHT:,} messages, of which {COMPACTS} at once hold {COMPACTS * WORK_BATCH:,}"
    yield f"  a table's {TABLE_UNITS:,} write units a second are {TABLE_UNITS / units:,.0f} changes a second"


def goals(cold: Lived, kept: Lived, hot: Lived, found: Finding, *, small: bool = False) -> list[Goal]:
    """small: batches are not full, so that finding costs more. What is put and never folded has less than the least."""
    finding_most = 0.1 if small else 0.03
    return [
        Goal("cold counter, write units a change, whole life, clean", cold.write_units, 2.2, 1.5),
        Goal("cold counter, write units a change, whole life, clean=False", kept.write_units, 1.2, 1.05),
        Goal("cold counter, finding, by what is counted", as_units(found.counted), finding_most, 0.005),
        Goal("1,000 changes a second through the queue, write units a change", hot.write_units, 0.2, 0.09),
    ]
