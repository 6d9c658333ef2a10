"""The goals of what users feel, in one place: `goal` makes the figure.

Rule 1: What is exact (requests, units, instructions) is judged; a pace and CPU are shown.
Rule 2: A goal that is known to be missed says why, and that is printed with it; so it does not end
`make bench` with 1.
"""

from typing import NamedTuple

from lab.measure.figure import Figure


class Goal(NamedTuple):
    """most: None where `least` is the goal. why: it may be missed."""

    most: float | None
    least: float
    judged: bool = True
    why: str = ""


POWERTOOLS = "Powertools' resolver imports its openapi.params, and with it pydantic"
OURS = "it loads ledger and reader whole, and frozen values make their methods at each import"
WHOLE = "a segment is read whole, and has up to 8,000 changes"
COLD = "a quiet lane has no checkpoint: its changes are a Query of its own"
PYTHON = "json.loads is C; each change is checked, named and packed in Python"
PARTS = "an Update's text follows from its parts, which memory and the judges answer, too"
BY_HAND = "clean, fold and settle each read for themselves; the service looks first, by one request"
BESIDE = "beside other processes its callers wait longer than they work: their CPU is above"
IN_TURN = "a change waits for the put before its own: two waits of 4 ms and more for 32 changes"
SHOWN = False
"""Not judged."""

GOALS = {
    # instructions; boto3's own imports are in what is compared with
    "instructions of import ledger / import boto3": Goal(1.2, 0.9),
    "instructions of import service.ring.main / import boto3": Goal(1.4, 0.9),
    "instructions of import service.compact.main / import boto3": Goal(1.4, 0.9),
    "instructions of import service.sweep.main / import boto3": Goal(1.4, 0.9),
    "instructions of import service.canary.main / import boto3": Goal(1.4, 0.9),
    "instructions of import service.add_from_queue.main / import boto3": Goal(1.35, 0.9),
    "instructions of import service.api.main / import boto3": Goal(1.6, 0.9, why=POWERTOOLS),
    "start of ring to its first answer / boto3 with a client: instructions": Goal(1.3, 0.8),
    "start of compact to its first answer / boto3 with a client: instructions": Goal(1.3, 0.8),
    "start of sweep to its first answer / boto3 with a client: instructions": Goal(1.3, 0.8),
    "start of canary to its first answer / boto3 with a client: instructions": Goal(
        1.3, 0.8, why=OURS
    ),
    "start of add_from_queue to its first answer / boto3 with a client: instructions": Goal(
        1.3, 0.8
    ),
    "start of api to its first answer / boto3 with a client: instructions": Goal(
        1.8, 0.8, why=POWERTOOLS
    ),
    "instructions of an add / bare put_item": Goal(1.15, 0.9),
    "instructions of a limited add / bare update_item showing the gate": Goal(0.9, 0.6, why=PARTS),
    "instructions of a hold / bare update_item showing the gate": Goal(1.2, 0.6),
    "instructions of a read / bare requests of the same": Goal(1.2, 0.9),
    "instructions of an add by FastClient / boto3's bare put_item": Goal(0.2, 0.04),
    "instructions of a limited add by FastClient / boto3's bare update_item of the same": Goal(
        0.25, 0.05
    ),
    "instructions of a hold by FastClient / boto3's bare update_item of the same": Goal(0.3, 0.05),
    "instructions of a read by FastClient / boto3's bare requests of the same": Goal(0.25, 0.05),
    "instructions of the queue's handler / json.loads of its messages": Goal(8, 2, why=PYTHON),
    # what depends on the machine
    "limited: client CPU of an add / bare update_item of the same": Goal(1.15, 0.1, SHOWN),
    "client CPU of an add by FastClient / bare boto3 put_item": Goal(0.2, 0.04, SHOWN),
    "client CPU of an add, all in flight / bare aiobotocore put_item, median": Goal(
        1.0, 0.1, SHOWN
    ),
    "pace of 32 callers of FastClient, answers after 4 ms / bare put_item": Goal(
        None, 6, SHOWN, why=BESIDE
    ),
    "the same, gathered": Goal(None, 8, SHOWN, why=IN_TURN),
    # requests and units
    "limited: requests of a counter's first add": Goal(
        5, 3, why="it needs each of its looks: docs/protocol.md#open-a-gate"
    ),
    "limited: round trips of a counter's first add": Goal(3, 2),
    "limited: write units of a counter's first add": Goal(2, 2),
    "limited: requests of the first add in a table without a shape": Goal(10, 3),
    "a visit that finds nothing to do / one that folds 5 changes: requests": Goal(
        0.34, 0.1, why=BY_HAND
    ),
    "reader.holds of 1,000 open holds: requests a hold": Goal(0.1, 0.01),
    "a list of the counters of one name, of 10,000: requests": Goal(1, 1),
    "top 10 of 10,000 cold counters: requests": Goal(500, 100, why=COLD),
    "100 changes without keys in a pack, over 100 shards: write units": Goal(4, 1),
    "history_page of 100 after 100,000 changes: read units": Goal(10, 1, why=WHOLE),
}


def goal(name: str, value: float) -> Figure:
    most, least, judged, why = GOALS[name]
    return Figure(name, value, most, least, judged, why)
