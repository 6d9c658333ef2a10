"""Thresholds: what is kept and published of a crossing, wherever an evaluation was stopped; and who asks for one."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from ledger import items
from ledger.dynamo.client import CONFIG
from ledger.errors import DamagedItem, GaveUp, LedgerError, OutcomeUnknown, Unavailable
from ledger.gate import decide
from ledger.gate.gates import Gates
from ledger.gate.items import gate_key
from ledger.lane import crossings, directory
from ledger.lane.add import pack_of
from ledger.lane.crossings import Crossing, crossing_key, crossing_of
from ledger.limit import IN, OUT, Limit, Threshold
from ledger.requests import GetMany, Item, Update, keyed, run
from ledger.settings import Settings
from ledger.values import Checkpoint, Delta, Lane
from service import observe
from service.compact.handler import Worker
from service.jobs import Evaluate, Job
from service.messages import message_of
from service.ring.handler import Ringer
from service.ring.ring import EVALUATE_EVERY_S, EVALUATE_MARGIN_S
from service.runtime import Runtime
from service.sweep.handler import Sweeper
from service.sweep.sweep import Place, place_item
from service.thresholds.evaluate import Evaluated, evaluate
from service.thresholds.event_bus import EventBus, NotPublished, Publish
from tests.service.support import NOTHING, Service, failed, never, sqs, stored
from tests.world import COUNTER, LANE, NOW_MS, A, B, Region, delta, settings, token

LOW, HIGH = Threshold(below=10), Threshold(above=100, name="high")
TOLD = settings(thresholds={"stock:": (LOW, HIGH)})
THERE = Lane(B, 3, COUNTER)
JOB = Evaluate(LANE)
DELAY_S = EVALUATE_EVERY_S + EVALUATE_MARGIN_S
LOW_KEY = crossing_key(A, COUNTER, "below-10")


class Shop(Service):
    """A Region with a counter, and an event bus."""

    def __init__(self) -> None:
        super().__init__()
        self._changes = 0

    def add(self, change: int, lane: Lane = LANE) -> None:
        self._changes += 1
        self.table.put(Delta(lane, token(self._changes, at_ms=NOW_MS), change))

    def evaluate(self, own: Settings = TOLD, done: Evaluated | None = None) -> Evaluated:
        done = done or Evaluated()
        self.runtime.run(evaluate(COUNTER, own, done))
        return done

    def kept(self) -> Crossing | None:
        item = self.table.items.get(LOW_KEY)
        return None if item is None else crossing_of(A, COUNTER, "below-10", item)

    def published(self) -> list[tuple[str, str, int, int]]:
        return [(each["threshold"], each["side"], each["value"], each["number"]) for each in self.bus.details]


# -- an evaluation -----------------------------------------------------------------------------------------------------


def test_a_crossing_is_kept_and_published_once_however_often_it_is_looked_for() -> None:
    shop = Shop()
    shop.add(5)
    assert [shop.evaluate() for _ in range(3)] == [Evaluated(published=1), Evaluated(), Evaluated()]
    assert shop.bus.details == [
        {
            "id": f"counters/{A}/{COUNTER}/below-10/1",
            "counter": COUNTER,
            "threshold": "below-10",
            "below": 10,
            "side": "in",
            "value": 5,
            "at": "1970-01-01T00:16:40.000Z",
            "number": 1,
            "region": A,
            "table": "counters",
        }
    ]
    assert shop.kept() == Crossing(
        region=A,
        counter=COUNTER,
        name="below-10",
        number=1,
        side=IN,
        value=5,
        at_ms=NOW_MS,
        told=1,
        below=10,
    )


def test_both_directions_of_each_threshold_are_published_and_nothing_that_has_none_here() -> None:
    shop = Shop()
    for change in (50, -45, 200, -199):
        shop.add(change)
        shop.evaluate()
        assert shop.evaluate(settings()) == shop.evaluate(replace(TOLD, region=B)) == Evaluated()
    low = [("below-10", IN, 5, 1), ("below-10", OUT, 205, 2), ("high", IN, 205, 1)]
    assert shop.published() == [*low, ("below-10", IN, 6, 3), ("high", OUT, 6, 2)]


@pytest.mark.parametrize("stopped", [Update, Publish])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_anywhere_neither_loses_a_crossing_nor_makes_another_of_it(stopped: type, after: bool) -> None:
    """Before a request, and after it with its answer lost."""
    for which in range(3):
        shop = Shop()
        shop.add(5)
        left = [which]

        def crash(request: Any, shop: Shop = shop, left: list[int] = left) -> None:
            left[0] -= isinstance(request, stopped)
            if isinstance(request, stopped) and left[0] == -1:
                if after:
                    shop.before = lambda _: None
                    shop.runtime.answer(request)
                raise KeyboardInterrupt

        shop.before = crash
        try:
            shop.evaluate()
        except KeyboardInterrupt:
            shop.before = lambda _: None
            shop.evaluate()
        kept = shop.kept()
        assert kept is not None
        assert (kept.number, kept.told) == (1, 1)
        assert len({str(each) for each in shop.bus.details}) == 1


def test_what_the_bus_did_not_take_is_published_by_the_next_one_before_it_looks_at_the_value() -> None:
    shop, done = Shop(), Evaluated()
    shop.add(5)
    shop.bus.down = True
    with pytest.raises(Unavailable):
        shop.evaluate(done=done)
    kept = shop.kept()
    assert kept is not None
    assert (done, kept.is_told) == (Evaluated(unconfirmed=1), False)
    shop.bus.down = False
    shop.add(50)
    assert shop.evaluate() == Evaluated(published=2)
    assert shop.published() == [("below-10", IN, 5, 1), ("below-10", OUT, 55, 2)]


def test_of_two_at_once_one_keeps_the_crossing_and_an_older_view_is_never_kept_over_a_newer_one() -> None:
    def further(shop: Shop) -> None:
        shop.evaluate()
        shop.add(50)
        shop.evaluate()

    def overtaken(by: Callable[[Shop], object]) -> Shop:
        shop = Shop()
        shop.add(5)

        def meanwhile(request: Any) -> None:
            if isinstance(request, Update):
                shop.before = lambda _: None
                by(shop)

        shop.before = meanwhile
        shop.evaluate()
        return shop

    assert overtaken(Shop.evaluate).published() == [("below-10", IN, 5, 1)]
    assert overtaken(further).published() == [("below-10", IN, 5, 1), ("below-10", OUT, 55, 2)]


def test_the_value_is_read_strongly_and_after_the_crossings() -> None:
    shop = Shop()
    shop.add(5)
    shop.evaluate()
    first, *reads = [request for request in shop.table.asked if isinstance(request, GetMany)]
    assert first == GetMany((LOW_KEY, crossing_key(A, COUNTER, "high")))
    assert reads[0] == GetMany((items.checkpoint_key(LANE), items.checkpoint_key(Lane(B, 0, COUNTER))))


def test_one_that_is_overtaken_each_time_gives_up() -> None:
    shop, number = Shop(), [0]
    shop.add(5)

    def meanwhile(request: Any) -> None:
        if isinstance(request, Update):
            number[0] += 1
            numbers = {name: {"N": str(2 * number[0])} for name in ("number", "told")}
            shop.table.store([keyed(LOW_KEY, side={"S": OUT}, value={"N": "99"}, at_ms={"N": "1"}, **numbers)])

    shop.before = meanwhile
    with pytest.raises(GaveUp, match="others kept crossings"):
        shop.evaluate()
    assert shop.bus.details == []


def test_an_item_that_nobody_can_read_is_damage_and_further_attributes_are_kept() -> None:
    shop = Shop()
    shop.add(5)
    shop.evaluate()
    shop.table.alter(LOW_KEY, note={"S": "mine"})
    shop.add(50)
    shop.evaluate()
    good = shop.table.items[LOW_KEY]
    assert good["note"] == {"S": "mine"}
    wrong: list[Item] = [
        {"side": {"S": "under"}},
        {"number": {"N": "1.5"}},
        {"told": {"N": "3"}},
        {"below": {"S": "1"}},
    ]
    for attributes in wrong:
        shop.table.store([{**good, **attributes}])
        with pytest.raises(DamagedItem, match="crossing#"):
            shop.evaluate()


def test_the_same_name_with_another_number_or_direction_goes_on_from_its_side() -> None:
    def named(**bound: int) -> Settings:
        return settings(thresholds={"stock:": (Threshold(name="low", **bound),)})  # type: ignore[arg-type]

    shop = Shop()
    shop.add(5)
    shop.evaluate(named(below=10))
    shop.bus.down = True
    with pytest.raises(Unavailable):
        shop.evaluate(named(below=4))
    shop.bus.down = False
    assert shop.evaluate(named(above=3)) == Evaluated(published=2)  # by its own number, also after a crash
    bounds = [(each.get("above"), each.get("below"), each["side"], each["number"]) for each in shop.bus.details]
    assert bounds == [(None, 10, IN, 1), (None, 4, OUT, 2), (3, None, IN, 3)]


def test_a_limited_counter_is_read_from_its_gates() -> None:
    shop = Shop()
    own = settings(regions=(A,), limits={"stock:": Limit(floor=0)}, thresholds={"stock:": (LOW,)})
    gates = Gates.of(own, COUNTER)
    assert gates is not None
    for n, change in enumerate((50, -45)):
        run(decide.add(gates, Delta(LANE, token(n, at_ms=NOW_MS), change)), shop.table, shop.table.now)
        shop.evaluate(own)
    assert shop.published() == [("below-10", IN, 5, 1)]


def test_each_update_may_come_again_or_late() -> None:
    """Whatever is applied once more changes nothing: the same at once, or after a further crossing."""
    shop, written = Shop(), list[Update]()
    shop.before = lambda request: written.append(request) if isinstance(request, Update) else None
    for change in (5, 50):
        shop.add(change)
        shop.evaluate()
    assert len(written) == 4
    before = dict(shop.table.items)
    for update in written:
        shop.table.answer(update)
        assert dict(shop.table.items) == before  # after each: a later one would hide what an older one did


def test_the_counter_of_a_key_is_that_of_a_crossing_of_this_region_alone() -> None:
    pk = crossing_key(A, "a#b", "low").pk
    assert (crossings.counter_of(pk, A), crossings.counter_of(pk, B)) == ("a#b", None)
    for other in ("crossing#", f"crossing#{A}#", f"crossing#{A}#a b", f"delta#{A}#0#c", "crossing"):
        assert crossings.counter_of(other, A) is None


# -- who asks for one --------------------------------------------------------------------------------------------------


def own(region: str = A, **changed: Any) -> Settings:
    return settings(region, **{"thresholds": {"stock:": (LOW,)}, "fold_min": 8_000} | changed)


class House(Service):
    """A Region with its ringer, worker and sweeper."""

    def __init__(self, own: Settings, page_size: int = 1_000, every_s: int = 60) -> None:
        super().__init__(Region(page_size=page_size))
        self.ringer = Ringer(own, self.runtime, self.watch, every_s)
        self.worker = Worker(own, self.runtime, self.watch)
        self.sweeper = Sweeper(own, self.runtime, self.watch, verify_one_in=0, draw=lambda: 0.0)

    def came(self, *came: Item, event: str = "INSERT") -> list[tuple[Job, int]]:
        """The evaluations for which a batch with these items asks."""
        records = [stored(each, event, n, NOW_MS) for n, each in enumerate(came, 1)]
        assert self.ringer({"Records": records}) == NOTHING
        return [(job, delay_s) for job, delay_s in self.taken() if isinstance(job, Evaluate)]

    def serve(self, *jobs: Job) -> None:
        assert self.worker(sqs(*map(message_of, jobs)), never) == NOTHING


def new(lane: Lane, n: int = 1) -> Item:
    return items.delta_item(delta(n, lane, at_ms=NOW_MS))


def checkpoint(lane: Lane) -> Item:
    return items.checkpoint_item(Checkpoint(lane, 5, 1, token(1), 1, token(1), NOW_MS))


READ_FROM: list[Item] = [
    *(new(LANE), new(THERE), items.pack_item(pack_of([delta(1, THERE), delta(2, THERE)]))),
    *(checkpoint(LANE), checkpoint(THERE), keyed(gate_key(LANE)), keyed(gate_key(THERE)), keyed(LOW_KEY)),
]
NOT_READ_FROM: list[Item] = [
    *(new(Lane(A, 0, "seats:gig")), keyed(items.checkpoint_key(LANE)._replace(sk="segment#x#0000000001"))),
    *(keyed(items.note_key(LANE)), directory.item_of(LANE), keyed(crossing_key(B, COUNTER, "below-10"))),
    keyed(crossing_key(A, COUNTER, "low")._replace(pk="crossing")),
]


def test_whatever_a_value_is_read_from_asks_for_an_evaluation_and_nothing_else_does() -> None:
    for event in ("INSERT", "MODIFY", "REMOVE"):
        for item in READ_FROM:
            assert House(own()).came(item, event=event) == ([(JOB, DELAY_S)] if event != "REMOVE" else [])
        for item in NOT_READ_FROM:
            assert House(own()).came(item, event=event) == []
    for elsewhere in (own(B), settings(fold_min=8_000)):
        assert House(elsewhere).came(new(LANE), new(THERE)) == []
    there = own(B, thresholds={"stock:": (Threshold(below=10, region=B),)})
    assert House(there).came(new(LANE)) == [(Evaluate(Lane(B, 0, COUNTER)), DELAY_S)]
    house = House(own())
    house.came(new(THERE), checkpoint(THERE), keyed(items.note_key(LANE)))
    assert house.metrics[observe.RECORDS_IGNORED] == 1
    assert not [key for key in house.table.items if key.pk.startswith("lane#")]  # it is in no directory


def test_it_is_skipped_only_while_a_message_is_on_its_way_that_is_served_after_it() -> None:
    house = House(own())
    assert house.came(new(LANE), new(THERE)) == [(JOB, DELAY_S)]
    for wall_ms, steady_ms, sent in (
        *((EVALUATE_EVERY_S * 1_000, 0, 0), (1, 0, 1)),
        (1, EVALUATE_EVERY_S * 1_000 + 1, 1),
    ):
        house.table.now_ms += wall_ms
        house.table.steady_ms += steady_ms
        assert len(house.came(new(THERE))) == sent
    assert EVALUATE_EVERY_S < DELAY_S
    assert House(own(), every_s=4).came(new(LANE)) == [(JOB, 4 + EVALUATE_MARGIN_S)]
    house.queue.down, house.table.now_ms = True, house.table.now_ms + 60_000
    records = [stored(keyed(items.note_key(LANE)), sequence=1), stored(new(THERE), sequence=2, made_ms=NOW_MS)]
    assert house.ringer({"Records": records}) == failed("2")
    house.queue.down = False
    assert house.came(new(THERE)) == [(JOB, DELAY_S)]


def test_a_message_is_served_by_an_evaluation_alone_and_one_that_failed_later_and_later() -> None:
    house = House(own())
    house.table.store([items.delta_item(delta(1))])
    house.bus.down = True
    job: Job = JOB
    for wait_s in (30, 60, 120):
        house.serve(job)
        ((job, delay_s),) = house.taken()
        assert (type(job), delay_s) == (Evaluate, wait_s)
    assert (house.metrics[observe.CROSSINGS_UNTOLD], house.metrics[observe.LANES_FAILED]) == (3, 3)
    house.bus.down = False
    house.serve(job)
    assert (house.metrics[observe.CROSSINGS_TOLD], house.metrics[observe.LANES_VISITED]) == (1, 0)
    level, text, fields = house.notes.lines[-1]
    assert (level, text, fields["crossings"]) == ("info", "evaluated", 1)
    assert "4" not in str(fields.values())  # no amount above debug
    house.serve(JOB)
    assert (len(house.bus.details), house.notes.lines[-1][:2]) == (1, ("debug", "looked"))
    elsewhere = House(settings())
    elsewhere.serve(JOB)
    assert (elsewhere.bus.details, observe.CROSSINGS_UNTOLD in elsewhere.metrics) == ([], False)


def test_the_sweep_asks_once_for_each_counter_of_any_region_and_again_where_a_message_was_lost() -> None:
    lanes = LANE, THERE, Lane(B, 0, "stock:1"), Lane(A, 0, "seats:gig")
    for page_size in (1, 1_000):
        for settled, asked in ((own(), ["stock:1", COUNTER]), (own(B), []), (settings(), [])):
            house = House(settled, page_size)
            house.table.now_ms = 86_400_000
            house.table.store(directory.item_of(lane) for lane in lanes)
            house.table.store([place_item(settled.region, Place(0, 0))])
            house.queue.refused = {Lane(A, 0, name) for name in asked} - {LANE}
            while house.queue.refused:
                with pytest.raises(LedgerError):
                    house.sweeper(never)
                house.queue.refused.clear()
            house.sweeper(never)
            evaluated = {job.lane for job, _ in house.taken() if isinstance(job, Evaluate)}
            assert evaluated == {Lane(A, 0, name) for name in asked}


# -- the bus -----------------------------------------------------------------------------------------------------------

PUBLISH = Publish(Crossing.after(None, A, COUNTER, LOW, 9, NOW_MS), "counters")


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


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "PutEvents")


def test_an_event_is_one_entry_of_the_bus_and_what_it_did_not_take_is_an_error() -> None:
    client = Events({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})
    Runtime(Region(), None, EventBus("orders", client)).answer(PUBLISH)
    ((entry,),) = [asked["Entries"] for asked in client.asked]
    assert json.loads(entry.pop("Detail")) == PUBLISH.detail
    assert entry.pop("Time").timestamp() == NOW_MS / 1_000
    assert entry == {"EventBusName": "orders", "Source": "exact-counter", "DetailType": "Threshold crossed"}
    failures: list[tuple[Any, type[LedgerError]]] = [
        ({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}, NotPublished),
        (refusal("InternalException"), OutcomeUnknown),
        (refusal("AccessDeniedException"), LedgerError),
        (ReadTimeoutError(endpoint_url="x"), OutcomeUnknown),
    ]
    for answer, error in failures:
        with pytest.raises(error):
            EventBus("default", Events(answer)).answer(PUBLISH)
    with pytest.raises(NotPublished, match="set LEDGER_THRESHOLD_BUS"):
        Runtime(Region()).answer(PUBLISH)


def test_a_region_that_publishes_makes_a_bus_and_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr("service.runtime.boto3.client", lambda *given, config: made.append((*given, config)))
    monkeypatch.setattr("service.runtime.DynamoTable.of", lambda *_: Region())
    environ = {"LEDGER_WORK_QUEUE_URL": "q", "LEDGER_THRESHOLD_BUS": "default"}
    for some in (own(), own(B), settings()):
        Runtime.of(some, environ)
    Runtime.of(own(), {"LEDGER_WORK_QUEUE_URL": "q"})
    assert made == [(*client, CONFIG) for client in (("sqs", A), ("events", A), ("sqs", B), ("sqs", A), ("sqs", A))]
