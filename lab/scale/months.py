"""A month of docs/costs.md's workloads and of larger ones, before and now, beside puts and deletes.

Rule 1: *Before* is arithmetic, not a measurement: a lane was marked with a touch for its changes of 5 s, a claim and a
removal for each visit, a visit a minute where there were changes, each costing what was reckoned of a small one, or
what commits and reads cost now.
Rule 2: *Now* is the model of a lane (model.py) in units, and for each message and change what the million has shown
that SQS and Lambda take (million.py). Where there is less to do, batches are less full: a second's is one batch. What
the sweep costs is told of the million.
Rule 3: A month has 730 hours, as `ledgerctl cost` has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.scale.dollars import Finding, finding
from lab.scale.lived import Lived
from lab.scale.loads import Load, zipf
from lab.scale.model import Told
from lab.scale.work_queue import RECEIVED_MAX
from ledgerctl.bill import LAMBDA_REQUEST, PRICES, SECONDS, SQS_REQUEST

TOUCH_S, VISIT_S = 5, 60
OPERATIONS = 3
"""Of SQS for a message, or for ten: sent, received, deleted."""

VISIT_UNITS = 2.585
"""Of a visit of a cold lane that a mark asked for, with its reads, SQS and Lambda, in write units."""


@dataclass(frozen=True, slots=True)
class Month:
    """Dollars of a month; units are a change's, in one Region."""

    name: str
    changes: float
    regions: int
    before: float
    finding: float
    commits: float
    reads: float
    puts_and_deletes: float
    units: float

    @property
    def now(self) -> float:
        return self.finding + self.commits + self.reads


def marks_units(rate: float, regions: int = 1) -> tuple[float, float]:
    """(write units of marks for a change of a lane with so many a second, in all Regions; visits of a change)."""
    touches, visits = min(1.0, 1 / TOUCH_S / rate), min(1.0, 1 / VISIT_S / rate)
    return (touches + 2 * visits) * regions, visits


def before(rate: float, changes: float, regions: int, visited: float = 0) -> float:
    """Dollars of marks and their visits, which never cost less than `visited`."""
    units, visits = marks_units(rate, regions)
    dollars = changes * PRICES.write / 1e6
    return dollars * units + max(dollars * visits * VISIT_UNITS, visited)


def month(name: str, load: Load, told: Told, million: Lived, client_s: Mapping[str, float], regions: int = 1) -> Month:
    """All lanes alike."""
    return months(name, [(load.lanes, load, told)], million, client_s, regions)


def months(
    name: str, parts: list[tuple[float, Load, Told]], million: Lived, client_s: Mapping[str, float], regions: int
) -> Month:
    """Lanes of several kinds: (how many, one of them, what became of it)."""
    found = finding(million, client_s)
    per_s = sum(load.rate * load.each * lanes for lanes, load, _ in parts)
    messages_s = sum(lanes * load.rate * load.each * told.all_messages / told.changes for lanes, load, told in parts)
    changes = per_s * SECONDS
    total = Month(name, changes, regions, 0, _of_messages(per_s, messages_s, million, found), 0, 0, 0, 0)
    for lanes, load, told in parts:
        share = lanes * load.rate * load.each * SECONDS
        written = told.writes("commit", "note"), told.writes("put", "delete")
        looks, reads = told.reads("look"), told.reads() - told.reads("look")
        dollars = share * PRICES.write / 1e6
        commits, of_reads = dollars * written[0] * regions, share * reads * PRICES.read / 1e6
        total = Month(
            name,
            changes,
            regions,
            total.before + before(load.rate * load.each, share, regions, commits + of_reads),
            total.finding + share * looks * PRICES.read / 1e6,
            total.commits + commits,
            total.reads + of_reads,
            total.puts_and_deletes + dollars * written[1] * regions,
            total.units + share / changes * sum(written),
        )
    return total


def _of_messages(per_s: float, messages_s: float, million: Lived, found: Finding) -> float:
    """Finding without the looks: of `ring` for each change, of SQS and `compact` for each message."""
    calls = max(million.calls["ring"] / million.changes, min(1.0, 1 / per_s)) * LAMBDA_REQUEST
    per_change = calls + (found.time["ring"] + found.directory) / 1e6
    of_message = million.changes / million.messages / 1e6
    sqs = OPERATIONS / min(RECEIVED_MAX, max(1.0, messages_s)) * SQS_REQUEST
    per_message = sqs + (found.calls["compact"] + found.time["compact"]) * of_message
    return (per_s * per_change + messages_s * per_message) * SECONDS


def _of_a_month(changes: float, counters: int) -> Load:
    """Of counters that are changed in both Regions."""
    return Load("month", changes / SECONDS / (2 * counters), lanes=2 * counters)


WORKLOADS = (
    ("A: a small shop, 2 Regions", _of_a_month(1e5, 2_000), 2),
    ("B: a busy shop, 2 Regions", _of_a_month(1e7, 5_000), 2),
    ("C: a meter, 2 Regions", _of_a_month(1e9, 1_000), 2),
    ("10/s over 10^3 lanes", Load("d", 0.01, lanes=10**3), 1),
    ("10^4/s over 10^6", Load("a", 0.01, lanes=10**6), 1),
    ("1,000/s on one lane", Load("c", 1_000.0), 1),
    ("10^5/s over 10^6", Load("e", 0.1, lanes=10**6), 1),
    ("10^5/s over 10^6, 2 Regions", Load("b", 0.1, lanes=10**6), 2),
)


def every_month(items: int, busy_s: float, million: Lived, client_s: Mapping[str, float]) -> list[Month]:
    rows = [
        month(name, load, load.told(max(items, int(load.rate * busy_s))), million, client_s, regions)
        for name, load, regions in WORKLOADS
    ]
    of_zipf = [(lanes, load, load.told(max(items // 4, int(load.rate * busy_s)))) for lanes, load in zipf()]
    return [*rows, months("10^4/s over 10^6, Zipf", of_zipf, million, client_s, 1)]
