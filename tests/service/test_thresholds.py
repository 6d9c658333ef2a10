"""Thresholds: what is kept and published of a crossing, wherever an evaluation was stopped; and
who asks for one.
"""

import json
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from ledger.core import items
from ledger.core.errors import DamagedItem, GaveUp, LedgerError, OutcomeUnknown, Unavailable
from ledger.core.limit import IN, OUT, Limit, Threshold
from ledger.core.requests import GetMany, Item, Update, keyed
from ledger.core.running import or_error
from ledger.core.settings import Settings
from ledger.core.values import Checkpoint, Delta, Lane
from ledger.gate import decide
from ledger.gate.gates import Gates
from ledger.gate.items import gate_key
from ledger.gate.set_limit import set_limit
from ledger.lane import directory
from ledger.lane.add import pack_of
from service.job_queue import Enqueue, Message
from service.jobs import Evaluate, Job
from service.ring.ring import EVALUATE_EVERY_S, EVALUATE_MARGIN_S
from service.runtime import Runtime
from service.sweep.place import Place, place_item
from service.thresholds import crossings
from service.thresholds.crossings import Crossing, crossing_key, crossing_of
from service.thresholds.evaluate import evaluate
from service.thresholds.event_bus import Evaluated, EventBus, NotPublished, Publish
from tests.service.support import NOTHING, Service, Sqs, failed
from tests.world import COUNTER, LANE, NOW_MS, A, B, Region, delta, settings, token

LOW, HIGH = Threshold(below=10), Threshold(above=100, name="high")
BOTH = settings(thresholds={"stock:": (LOW, HIGH)})
THERE = Lane(B, 3, COUNTER)
JOB = Evaluate(LANE)
DELAY_S = EVALUATE_EVERY_S + EVALUATE_MARGIN_S
LOW_KEY = crossing_key(A, COUNTER, "below-10")


def shop(*changes: int) -> Service:
    """A Region with a counter of which these changes were evaluated."""
    service = Service()
    for change in changes:
        add(service, change)
        evaluated(service)
    return service


def add(service: Service, change: int) -> None:
    service.put(Delta(LANE, token(len(service.items) + 1, at_ms=NOW_MS), change))


def evaluated(service: Service, own: Settings = BOTH, done: Evaluated | None = None) -> Evaluated:
    done = done or Evaluated()
    service.run(evaluate(COUNTER, own, done))
    return done


def kept(service: Service) -> Crossing:
    return crossing_of(A, COUNTER, "below-10", service.items[LOW_KEY])


def published(service: Service) -> list[tuple[str, str, int, int]]:
    return [
        (each["threshold"], each["side"], each["value"], each["number"]) for each in service.details
    ]


def test_both_directions_of_each_threshold_are_published() -> None:
    service = shop()
    for change in (50, -45, 200, -199):
        add(service, change)
        evaluated(service)
        for none in (settings(), replace(BOTH, region=B)):
            assert evaluated(service, none) == Evaluated()
    low = [("below-10", IN, 5, 1), ("below-10", OUT, 205, 2), ("high", IN, 205, 1)]
    assert published(service) == [*low, ("below-10", IN, 6, 3), ("high", OUT, 6, 2)]
    own = settings(regions=(A,), limits={"stock:": Limit(floor=0)}, thresholds={"stock:": (LOW,)})
    gates, service = Gates.of(own, COUNTER), Service()  # a limited counter is read from its gates
    assert gates is not None
    for n, change in enumerate((50, -45)):
        service.run(decide.add(gates, Delta(LANE, token(n, at_ms=NOW_MS), change)))
        evaluated(service, own)
    assert published(service) == [("below-10", IN, 5, 1)]


def test_one_of_a_limit_is_measured_by_the_limit_set() -> None:
    limits = {"stock:": Limit(ceiling=10, region=A), "stock:goods:": Limit(floor=-4, region=A)}
    share, left = Threshold(of_ceiling=0.75, name="near"), Threshold(left=3)
    own = settings(regions=(A,), limits=limits, thresholds={"stock:": (share, left)})
    gates, service = Gates.of(own, COUNTER), Service()
    assert gates is not None
    for n, change in enumerate((7, 1)):
        service.run(decide.add(gates, Delta(LANE, token(n, at_ms=NOW_MS), change)))
        service.asked.clear()
        evaluated(service, own)
    assert published(service) == [("near", IN, 8, 1), ("left-3", IN, 8, 1)]
    for ceiling in (11, 8, 1_000):
        service.run(set_limit(gates, None, ceiling))
        service.asked.clear()
        evaluated(service, own)
        reads = [request for request in service.asked if isinstance(request, GetMany)]
        # and those of the crossings before it
        assert [keys for keys, _ in reads[1:]] == [(gate_key(LANE),)]
    assert published(service)[2:] == [
        *(("near", OUT, 8, 2), ("left-3", OUT, 8, 2)),
        *(("near", IN, 8, 3), ("left-3", IN, 8, 3)),
        *(("near", OUT, 8, 4), ("left-3", OUT, 8, 4)),
    ]
    assert [each["above"] for each in service.details] == [7, 7, 8, 8, 6, 5, 750, 997]
    goods = "stock:goods:1"  # it has no ceiling, so `near` says nothing of it
    gates = Gates.of(own, goods)
    assert gates is not None
    service.run(decide.add(gates, Delta(Lane(A, 0, goods), token(9, at_ms=NOW_MS), -2)))
    service.run(evaluate(goods, own, Evaluated()))
    ((name, below, side),) = [
        (each["threshold"], each["below"], each["side"]) for each in service.details[8:]
    ]
    assert (name, below, side) == ("left-3", -1, IN)


def test_an_evaluation_overtaken_each_time_gives_up() -> None:
    service = shop()
    add(service, 5)
    service.before(Update, lambda _: evaluated(service), times=1)
    evaluated(service)
    assert published(service) == [("below-10", IN, 5, 1)]

    def others(_: Update) -> None:
        number = {"N": str(2 * service.kinds.count(Update))}
        service.store(
            [
                keyed(
                    LOW_KEY,
                    side={"S": OUT},
                    value={"N": "9"},
                    at_ms={"N": "1"},
                    number=number,
                    told=number,
                )
            ]
        )

    service = shop()
    add(service, 5)
    service.before(Update, others)
    with pytest.raises(GaveUp, match="others kept crossings"):
        evaluated(service)
    assert service.details == []


def test_an_unreadable_item_is_damage_and_attributes_are_kept() -> None:
    service = shop(5)
    service.alter(LOW_KEY, note={"S": "mine"})
    add(service, 50)
    evaluated(service)
    good = service.items[LOW_KEY]
    assert good["note"] == {"S": "mine"}
    wrong: list[Item] = [
        {"side": {"S": "x"}},
        {"number": {"N": "1.5"}},
        {"told": {"N": "3"}},
        {"below": {"S": "1"}},
    ]
    for attributes in wrong:
        service.store([{**good, **attributes}])
        with pytest.raises(DamagedItem, match="crossing#"):
            evaluated(service)


def test_a_name_with_another_number_goes_on_from_its_side() -> None:
    def named(**bound: Any) -> Settings:
        return settings(thresholds={"stock:": (Threshold(name="low", **bound),)})

    service = shop()
    add(service, 5)
    evaluated(service, named(below=10))
    service.bus_down = True
    with pytest.raises(Unavailable):
        evaluated(service, named(below=4))
    service.bus_down = False
    # by its own number, also after a crash
    assert evaluated(service, named(above=3)) == Evaluated(published=2)
    bounds = [
        (each.get("above"), each.get("below"), each["side"], each["number"])
        for each in service.details
    ]
    assert bounds == [(None, 10, IN, 1), (None, 4, OUT, 2), (3, None, IN, 3)]


def own(region: str = A, **changed: Any) -> dict[str, Any]:
    return {"region": region, "thresholds": {"stock:": (LOW,)}, "fold_min": 8_000} | changed


def evaluations(
    service: Service, *came: Delta | Item, event: str = "INSERT"
) -> list[tuple[Job, int]]:
    """For which a batch with these items asks."""
    assert service.rings(*came, event=event) == NOTHING
    return [(job, delay_s) for job, delay_s in service.taken() if isinstance(job, Evaluate)]


def new(lane: Lane, n: int = 1) -> Delta:
    return delta(n, lane, at_ms=NOW_MS)


def checkpoint(lane: Lane) -> Item:
    return items.checkpoint_item(Checkpoint(lane, 5, 1, token(1), 1, token(1), NOW_MS))


READ_FROM: list[Delta | Item] = [
    *(new(LANE), new(THERE), items.pack_item(pack_of([delta(1, THERE), delta(2, THERE)]))),
    *(
        checkpoint(LANE),
        checkpoint(THERE),
        keyed(gate_key(LANE)),
        keyed(gate_key(THERE)),
        keyed(LOW_KEY),
    ),
]
NOT_READ_FROM: list[Delta | Item] = [
    *(
        new(Lane(A, 0, "seats:gig")),
        keyed(items.checkpoint_key(LANE)._replace(sk="segment#x#0000000001")),
    ),
    *(
        keyed(items.note_key(LANE)),
        directory.item_of(LANE),
        keyed(crossing_key(B, COUNTER, "below-10")),
    ),
    *(
        keyed(LOW_KEY._replace(pk=pk))
        for pk in ("crossing", "crossing#", f"crossing#{A}#", f"crossing#{A}#a b")
    ),
]


def test_a_value_that_is_read_asks_for_an_evaluation() -> None:
    for event in ("INSERT", "MODIFY", "REMOVE"):
        for item in READ_FROM:
            asked = evaluations(Service(**own()), item, event=event)
            assert asked == ([(JOB, DELAY_S)] if event != "REMOVE" else [])
        for item in NOT_READ_FROM:
            assert evaluations(Service(**own()), item, event=event) == []
    for elsewhere in (Service(**own(B)), Service(fold_min=8_000)):
        assert evaluations(elsewhere, new(LANE), new(THERE)) == []
    there = own(B, thresholds={"stock:": (Threshold(below=10, region=B),)})
    assert evaluations(Service(**there), new(LANE)) == [(Evaluate(Lane(B, 0, COUNTER)), DELAY_S)]
    service = Service(**own())
    evaluations(service, new(THERE), checkpoint(THERE), keyed(items.note_key(LANE)))
    assert not [key for key in service.items if key.pk.startswith("lane#")]  # it is in no directory
    assert crossings.counter_of(crossing_key(A, "a#b", "low").pk, A) == "a#b"


def test_an_ask_is_skipped_while_its_message_is_on_its_way() -> None:
    service = Service(**own())
    assert evaluations(service, new(LANE), new(THERE)) == [(JOB, DELAY_S)]
    every_ms = EVALUATE_EVERY_S * 1_000
    for wall_ms, steady_ms, sent in ((every_ms, 0, 0), (1, 0, 1), (1, every_ms + 1, 1)):
        service.time_goes(wall_ms, steady_ms)
        assert len(evaluations(service, new(THERE))) == sent
    assert evaluations(Service(**own()).start(every_s=4), new(LANE)) == [
        (JOB, 4 + EVALUATE_MARGIN_S)
    ]
    service.queue_down = True
    service.time_goes(60_000)
    assert service.rings(keyed(items.note_key(LANE)), new(THERE)) == failed("2")
    service.queue_down = False
    assert evaluations(service, new(THERE)) == [(JOB, DELAY_S)]


def test_a_message_is_served_by_an_evaluation_and_fails_later() -> None:
    service = Service(**own())
    service.put(delta(1))
    service.bus_down = True
    job: Job = JOB
    for wait_s in (30, 60, 120):
        service.visit(job)
        ((job, delay_s),) = service.taken()
        assert (type(job), delay_s) == (Evaluate, wait_s)
    assert service.counted("CrossingsUntold", "LanesFailed") == (3, 3)
    service.bus_down = False
    service.visit(job)
    assert service.counted("CrossingsTold", "LanesVisited") == (1, 0)
    level, text, fields = service.lines()[-1]
    assert (level, text) == ("info", "evaluated")
    assert "4" not in str(fields.values())  # no amount above debug
    service.visit(JOB)
    assert (len(service.details), service.notes.lines[-1][:2]) == (1, ("debug", "looked"))
    elsewhere = Service()
    elsewhere.visit(JOB)
    assert (elsewhere.details, "CrossingsUntold" in elsewhere.notes.metrics) == ([], False)


def test_the_sweep_asks_once_a_counter() -> None:
    lanes = LANE, THERE, Lane(B, 0, "stock:1"), Lane(A, 0, "seats:gig")
    for page_size in (1, 1_000):
        for given, asked in ((own(), {"stock:1", COUNTER}), (own(B), set()), ({}, set())):
            service = Service(**given, page_size=page_size, now_ms=86_400_000)
            service.store(directory.item_of(lane) for lane in lanes)
            service.store([place_item(service.settings.region, Place(0, 0))])
            service.refused = {Lane(A, 0, name) for name in asked} - {LANE}
            if service.refused:
                with pytest.raises(LedgerError):
                    service.sweep()
                service.refused.clear()
            service.sweep()
            assert {job.lane for job, _ in service.taken() if isinstance(job, Evaluate)} == {
                Lane(A, 0, name) for name in asked
            }


PUBLISH = Publish(Crossing.after(None, A, COUNTER, LOW, 9, NOW_MS), "counters")


def test_an_event_is_one_entry_and_a_refused_one_is_an_error() -> None:
    client = Mock(
        **{"put_events.return_value": {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}}
    )
    Runtime(Region(), None, EventBus("orders", lambda: client)).answer(PUBLISH)
    client.put_events.assert_called_once()
    (entry,) = client.put_events.call_args.kwargs["Entries"]
    assert json.loads(entry.pop("Detail")) == PUBLISH.detail
    assert entry.pop("Time").timestamp() == NOW_MS / 1_000
    assert entry == {
        "EventBusName": "orders",
        "Source": "exact-counter",
        "DetailType": "Threshold crossed",
    }
    failures: list[tuple[Any, type[LedgerError]]] = [
        ({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}, NotPublished),
        (
            ClientError({"Error": {"Code": "InternalException", "Message": "no"}}, "PutEvents"),
            OutcomeUnknown,
        ),
        (ReadTimeoutError(endpoint_url="x"), OutcomeUnknown),
    ]
    for answer, error in failures:
        with pytest.raises(error):
            EventBus("default", partial(Mock, **{"put_events.side_effect": [answer]})).answer(
                PUBLISH
            )
    with pytest.raises(NotPublished, match="Set LEDGER_THRESHOLD_BUS"):
        Runtime(Region()).answer(PUBLISH)


def test_a_region_that_publishes_has_a_bus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[str, str]] = []

    def client_of(service: str, region: str) -> Any:
        made.append((service, region))
        return (
            Sqs()
            if service == "sqs"
            else Mock(**{"put_events.return_value": {"FailedEntryCount": 0}})
        )

    monkeypatch.setattr("service.runtime.client_of", client_of)
    bus, has_bus = {"LEDGER_THRESHOLD_BUS": "default"}, []
    for given, environ in ((own(), bus), (own(B), bus), ({}, bus), (own(), {})):
        runtime = Runtime.of(settings(**given), {"LEDGER_WORK_QUEUE_URL": "q", **environ})
        assert made == []
        assert runtime.answer(Enqueue((Message(Evaluate(LANE)),))) == (None,)
        has_bus.append(not isinstance(or_error(runtime.answer, PUBLISH), NotPublished))
        sent, made[:] = made[:], []
        assert sent == [("sqs", settings(**given).region), *[("events", A)] * has_bus[-1]]
    assert has_bus == [True, False, False, False]
