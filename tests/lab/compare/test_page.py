"""The table to choose by, and the page around it."""

from dataclasses import replace

from lab.bench.compaction import Speed
from lab.compare import accuracy, summary, tables
from lab.compare.accuracy import Accuracy
from lab.compare.backlog import Compaction
from lab.compare.cost import Spent
from lab.compare.events import Counted, Limit, Reads
from lab.compare.page import Found, page
from lab.compare.scale import CHANGES, Read
from lab.compare.scenarios import LIMITS, SCENARIOS
from lab.compare.speed import COUNTERS, THREADS, Pace, Trips
from lab.compare.summary import Row, choice, memory
from lab.designs import every
from ledger.units import Cost

APPROACHES = every(accuracy.SETTINGS)
FAULTS = {each.name: Counted(400, 1, 2, 0, Reads(100, 3, 4)) for each in SCENARIOS}
LIMIT: dict[str, Limit | None] = {each.name: Limit(0, 5) for each in LIMITS}
ACCURACY = [Accuracy(each.name, each.claims.units, FAULTS, LIMIT) for each in APPROACHES]
SPENT = [
    Spent(each, 100, 10, Cost(100, 0, 100, 100), Cost(7, 20.0, 50, 50), Cost(10, 20.0), 24.0, 0.5, {}, {})
    for each in APPROACHES
]
READS = [[Read(each.name, n, 1, 29, n / 100, 1, measured=n < 10**5) for n in CHANGES] for each in APPROACHES]
PACES = [
    Pace(each.name, threads, counters, 10, 3, threads / 8, 1.0, 1.0, 0, 0, 0)
    for counters in COUNTERS
    for threads in THREADS
    for each in APPROACHES
]
FOUND = Found(
    date="2026-01-31",
    engine="an engine",
    events="some",
    accuracy=ACCURACY,
    accuracy_on_engine=ACCURACY,
    shop=SPENT,
    one=SPENT,
    trips=[Trips(each.name, 1, 2) for each in APPROACHES],
    paces=PACES,
    reads=READS,
    wall=11_377,
    compactions=[Compaction("this library", 2_000, 1.0, 2.0, 3.0)],
    steps=Speed(24_000, 13_000, 5_000),
    peaks_mb={1_000_000: 15.8},
)


def test_a_row_sums_what_befell_an_approach() -> None:
    ours = FOUND.rows[-1]
    wrong = " | ".join(f"{len(names)} / {2 * len(names)}" for names in summary.GROUPS.values())
    assert list(choice([ours]))[-1] == f"| this library | for ever | {wrong} | no | 1.50 | ~10,000 | 4.00 |"
    assert "two Regions: lost / doubled of 1,200 |" in next(choice([ours]))
    assert sorted(name for names in summary.GROUPS.values() for name in names) == sorted(FAULTS)


def test_what_cannot_be_is_said_and_what_grows_too() -> None:
    row = FOUND.rows[0]
    full = [replace(read, possible=False) for read in row.reads]
    growing = replace(row.one, left_items=0)
    cells = list(choice([Row(row.approach, row.accuracy, growing, full, row.pace)]))[-1].split(" | ")
    assert cells[-3:-1] == ["1.50, grows", "full"]
    assert list(tables.dollars([row.one], [growing]))[-1].split()[-5:] == ["full"] * 5


def test_a_memory_is_told_in_words() -> None:
    told = {each.name: memory(each.claims.memory) for each in APPROACHES}
    assert told["atomic ADD"] == "no"
    assert told["optimistic with history"] == "99 changes"
    assert told["transaction, client token"] == "10 minutes"
    assert told["transaction, marker with TTL"] == "7 days"
    assert told["item collection, naive merge"] == "until merged"
    assert told["this library"] == "for ever"


def test_the_prose_of_the_page_is_wrapped() -> None:
    prose = "".join(page(FOUND).split("```")[::2])
    assert not [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")]
