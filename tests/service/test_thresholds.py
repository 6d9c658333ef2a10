"""Thresholds in the service: what asks for an evaluation, what is spared, who evaluates, and how an event is put."""

import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from ledger import items
from ledger.errors import LedgerError, OutcomeUnknown
from ledger.gate.items import gate_key, new_gate
from ledger.lane import directory
from ledger.lane.add import pack_of
from ledger.limit import Limit, Threshold
from ledger.requests import Item, Put, keyed
from ledger.settings import Settings
from ledger.values import Checkpoint, Lane
from service import observe
from service.compact.handler import Worker
from service.event_bus import EventBus, NotTold
from service.ring.handler import Ringer
from service.ring.ring import ASK_EVERY_S, ASK_MARGIN_S
from service.runtime import Runtime
from service.sweep.handler import Sweeper
from service.sweep.sweep import Place, place_item
from service.work import Work
from tests.service.support import Service, never, sqs, stored
from tests.support import COUNTER, LANE, NOW_MS, A, B, Region, delta, settings
from thresholds import Crossing, Tell
from thresholds.items import crossing_key

LOW = Threshold(below=10)
THERE = Lane(B, 3, COUNTER)
ASKED = Work(LANE, fold=False, thresholds=True)
DELAY_S = ASK_EVERY_S + ASK_MARGIN_S
ID = f"counters/{A}/{COUNTER}/below-10/1"


def told(region: str = A, **changed: Any) -> Settings:
    return settings(region, thresholds={"stock:": (LOW,)}, fold_min=8_000, **changed)


class House(Service):
    """A Region with its ringer, worker and sweeper."""

    def __init__(self, own: Settings | None = None, page_size: int = 1_000) -> None:
        super().__init__(Region(page_size=page_size))
        own = own or told()
        log: Any = self.told
        self.ringer = Ringer(own, self.runtime, log, self.told)
        self.worker = Worker(own, self.runtime, log, self.told)
        self.sweeper = Sweeper(own, self.runtime, log, self.told, verify_one_in=0, draw=lambda: 0.0)

    def came(self, *came: Item, event: str = "INSERT") -> list[tuple[Work, int]]:
        """What a batch with these items sends."""
        records = [stored(each, event, n, NOW_MS) for n, each in enumerate(came, 1)]
        assert self.ringer({"Records": records}) == {"batchItemFailures": []}
        sent, self.queue.sent = self.queue.sent, []
        return [(work, delay_s) for work, delay_s in sent if work.thresholds]

    def serve(self, *works: Work) -> None:
        assert self.worker(sqs(*(each.to_json() for each in works)), never) == {"batchItemFailures": []}


def new(lane: Lane, n: int = 1) -> Item:
    return items.delta_item(delta(n, lane, at_ms=NOW_MS))


def checkpoint(lane: Lane) -> Item:
    return items.checkpoint_item(Checkpoint(lane, 5, 1, delta(1).token, 1, delta(1).token, NOW_MS))


READ_FROM = {
    "a delta": new(LANE),
    "a delta of another Region": new(THERE),
    "a pack": items.pack_item(pack_of([delta(1, THERE), delta(2, THERE)])),
    "a checkpoint": checkpoint(LANE),
    "a checkpoint of another Region": checkpoint(THERE),
    "a gate": keyed(gate_key(LANE)),
    "a gate of another Region": keyed(gate_key(THERE)),
    "a crossing": keyed(crossing_key(A, COUNTER, "below-10")),
}


@pytest.mark.parametrize("event", ["INSERT", "MODIFY"])
@pytest.mark.parametrize("item", READ_FROM.values(), ids=READ_FROM)
def test_whatever_a_value_is_read_from_asks_for_an_evaluation(item: Item, event: str) -> None:
    assert House().came(item, event=event) == [(ASKED, DELAY_S)]


NOTHING_TO_SAY = {
    "another counter's delta": new(Lane(A, 0, "seats:gig")),
    "a segment": keyed(items.checkpoint_key(LANE)._replace(sk="segment#x#0000000001")),
    "a clean note": keyed(items.note_key(LANE)),
    "a directory's item": directory.item_of(LANE),
    "a crossing of another Region": keyed(crossing_key(B, COUNTER, "below-10")),
    "no item of ours": keyed(crossing_key(A, COUNTER, "low")._replace(pk="crossing")),
}


@pytest.mark.parametrize("item", NOTHING_TO_SAY.values(), ids=NOTHING_TO_SAY)
def test_nothing_else_does(item: Item) -> None:
    assert House().came(item) == []


def test_a_delete_does_not_and_neither_does_what_this_region_does_not_tell() -> None:
    assert House().came(new(LANE), event="REMOVE") == []
    assert House(told(B)).came(new(LANE), new(THERE)) == []
    assert House(settings(fold_min=8_000)).came(new(LANE)) == []
    elsewhere = settings(B, thresholds={"stock:": (Threshold(below=10, region=B),)}, fold_min=8_000)
    assert House(elsewhere).came(new(LANE)) == [(Work(Lane(B, 0, COUNTER), fold=False, thresholds=True), DELAY_S)]


def test_what_is_read_for_a_threshold_is_not_ignored_and_is_in_no_directory() -> None:
    house = House()
    house.came(new(THERE), checkpoint(THERE), keyed(items.note_key(LANE)))
    assert house.told.metrics[observe.RECORDS_IGNORED] == 1
    assert not [key for key in house.table.items if key.pk.startswith("lane#")]


def test_it_is_spared_only_while_a_message_is_on_its_way_that_is_served_after_it() -> None:
    house = House()
    assert house.came(new(LANE), new(THERE)) == [(ASKED, DELAY_S)]
    for wall_ms, steady_ms, sent in ((ASK_EVERY_S * 1_000, 0, 0), (1, 0, 1), (1, ASK_EVERY_S * 1_000 + 1, 1)):
        house.table.now_ms += wall_ms
        house.table.steady_ms += steady_ms
        assert len(house.came(new(THERE))) == sent
    assert ASK_EVERY_S < DELAY_S


def test_a_message_that_was_not_confirmed_spares_nothing_and_its_record_comes_again() -> None:
    house = House()
    house.queue.down = True
    records = [stored(keyed(items.note_key(LANE)), sequence=1), stored(new(THERE), sequence=2, made_ms=NOW_MS)]
    assert house.ringer({"Records": records}) == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    house.queue.down = False
    assert house.came(new(THERE)) == [(ASKED, DELAY_S)]


def test_a_process_that_rings_more_often_asks_as_often() -> None:
    house = House()
    log: Any = house.told
    house.ringer = Ringer(told(), house.runtime, log, house.told, every_s=4)
    assert house.came(new(LANE)) == [(ASKED, 4 + ASK_MARGIN_S)]


# -- the message -------------------------------------------------------------------------------------------------------


def test_a_message_says_it_and_joined_ones_keep_it() -> None:
    assert json.loads(ASKED.to_json()) == {"lane": str(LANE), "fold": False, "thresholds": True}
    assert Work.from_json(ASKED.to_json(), A) == ASKED
    assert Work(LANE) | ASKED == ASKED | Work(LANE) == Work(LANE, thresholds=True)


# -- who evaluates -----------------------------------------------------------------------------------------------------


def test_a_message_is_served_by_an_evaluation_alone() -> None:
    house = House()
    house.table.store([items.delta_item(delta(1))])
    house.serve(ASKED)
    assert house.bus.ids == [ID]
    assert (house.told.metrics[observe.CROSSINGS_TOLD], house.told.metrics[observe.LANES_VISITED]) == (1, 0)
    (line,) = [fields for level, text, fields in house.told.lines if (level, text) == ("info", "evaluated")]
    assert line["crossings"] == 1
    assert "4" not in str(line.values())  # no amount above debug


def test_without_thresholds_here_a_message_finds_nothing_to_do_and_tells_no_metric() -> None:
    house = House(settings())
    house.serve(ASKED)
    assert house.bus.ids == []
    assert observe.CROSSINGS_UNTOLD not in house.told.metrics


def test_an_event_that_the_bus_did_not_take_is_tried_again_later_and_later() -> None:
    house = House()
    house.table.store([items.delta_item(delta(1))])
    house.bus.down = True
    work = ASKED
    for wait_s in (30, 60, 120):
        house.serve(work)
        ((work, delay_s),) = house.queue.sent
        assert (work.thresholds, delay_s) == (True, wait_s)
        house.queue.sent.clear()
    assert house.told.metrics[observe.CROSSINGS_UNTOLD] == 3
    house.bus.down = False
    house.serve(work)
    house.serve(ASKED)
    assert house.bus.ids == [ID]


def test_a_visit_that_is_joined_with_it_comes_first() -> None:
    house = House(replace(told(), fold_min=1))
    house.table.store([items.delta_item(delta(1))])
    house.bus.down = True
    house.serve(Work(LANE), ASKED)
    assert items.checkpoint_key(LANE) in house.table.items
    assert house.told.metrics[observe.DELTAS_FOLDED] == 1


# -- the sweep ---------------------------------------------------------------------------------------------------------


def swept(house: House, *lanes: Lane) -> list[Work]:
    house.table.now_ms = 86_400_000
    house.table.store(directory.item_of(lane) for lane in lanes)
    house.table.store([place_item(A, Place(0, 0))])
    house.sweeper(never)
    return [work for work, _ in house.queue.sent if work.thresholds]


@pytest.mark.parametrize("page_size", [1, 1_000])
def test_the_sweep_asks_once_for_each_counter_of_any_region(page_size: int) -> None:
    others = [Lane(B, 0, "stock:1"), Lane(A, 2, "stock:1"), Lane(A, 1, "stock:1"), Lane(B, 0, "seats:1")]
    works = swept(House(page_size=page_size), LANE, THERE, *others)
    assert sorted(works, key=str) == [Work(Lane(A, 0, "stock:1"), fold=False, thresholds=True), ASKED]


def test_the_sweep_asks_for_none_where_none_is_told() -> None:
    assert swept(House(settings()), LANE) == []
    assert swept(House(settings(thresholds={"stock:": (Threshold(below=10, region=B),)})), LANE) == []


def test_a_sweep_whose_message_was_lost_does_the_bucket_again() -> None:
    house = House()
    house.queue.refused.add(LANE)
    with pytest.raises(LedgerError):
        swept(house, THERE)
    house.queue.refused.clear()
    assert swept(house, THERE) == [ASKED]


# -- the bus -----------------------------------------------------------------------------------------------------------

TELL = Tell(Crossing.after(None, A, COUNTER, LOW, 9, NOW_MS), "counters")


class Events:
    """A client of EventBridge."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self._answer = answer
        self.asked: list[dict[str, Any]] = []

    def put_events(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_an_event_is_one_entry_of_the_bus() -> None:
    client = Events({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})
    assert EventBus("orders", client).answer(TELL) is None  # type: ignore[func-returns-value]
    ((entry,),) = [asked["Entries"] for asked in client.asked]
    detail = json.loads(entry["Detail"])
    assert (entry["EventBusName"], entry["Source"], entry["DetailType"]) == (
        "orders",
        "exact-counter",
        "Threshold crossed",
    )
    assert detail == TELL.crossing.event("counters")
    assert detail["id"] == ID


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "PutEvents")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}, NotTold),
        (refusal("InternalException"), OutcomeUnknown),
        (refusal("AccessDeniedException"), LedgerError),
        (ReadTimeoutError(endpoint_url="x"), OutcomeUnknown),
    ],
)
def test_what_the_bus_did_not_take_is_an_error(answer: Any, error: type[LedgerError]) -> None:
    with pytest.raises(error):
        EventBus("default", Events(answer)).answer(TELL)


def test_a_runtime_hands_each_request_to_what_knows_it() -> None:
    events = Events({"FailedEntryCount": 0, "Entries": [{}]})
    table = Region()
    runtime = Runtime(table, None, EventBus("default", events))
    runtime.answer(TELL)
    runtime.answer(Put(new(LANE)))
    assert (len(events.asked), len(table.items)) == (1, 1)


def test_a_crossing_without_a_bus_is_kept_and_its_bus_is_asked_for() -> None:
    with pytest.raises(NotTold, match="set LEDGER_THRESHOLD_BUS"):
        Runtime(Region()).answer(TELL)


def test_a_region_that_tells_makes_a_bus_and_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr("service.runtime.boto3.client", lambda *given, **_: made.append(given))
    monkeypatch.setattr("service.runtime.DynamoTable.of", lambda *_: Region())
    environ = {"LEDGER_WORK_QUEUE_URL": "q", "LEDGER_THRESHOLD_BUS": "default"}
    for own in (told(), told(B), settings()):
        Runtime.of(own, environ)
    Runtime.of(told(), {"LEDGER_WORK_QUEUE_URL": "q"})
    assert made == [("sqs", A), ("events", A), ("sqs", B), ("sqs", A), ("sqs", A)]


def test_a_gate_of_a_limited_counter_is_evaluated_too() -> None:
    limits = {"stock:": Limit(floor=0)}
    house = House(told(limits=limits))
    house.table.store([{**new_gate(LANE, limits["stock:"]), "total": {"N": "5"}, "count": {"N": "1"}}])
    house.serve(ASKED)
    assert house.bus.ids == [ID]
    assert house.told.metrics[observe.LANES_UNREAD] == 0  # its lane has a gate, and was not looked at
    assert house.told.shown("error") == "[]"
