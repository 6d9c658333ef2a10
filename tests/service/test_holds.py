"""Limited counters over HTTP: what is decided, held, captured, released and told, in two Regions."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from service.api.models import HOLD_S_MAX

from ledger import Limit, errors
from ledger.gate.items import gate_key
from ledger.memory import MemoryTable
from ledger.requests import Delete, Get, GetMany, Put, Query, Request, Update
from ledger.values import Lane
from service import observe
from tests.service.http_client import HERE, SETTINGS, THERE, ULID, Answer, Client

COUNTER = "seats:gig"
AT = "2025-01-01T09:50:00Z"
MADE_UP = f"{ULID}.{HERE}.0.3"


class Table(MemoryTable):
    """May be down, or answer some kinds of requests with an error."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: tuple[Exception, tuple[type, ...]] | None = None

    def answer(self, request: Request, /) -> Any:
        if self.failing is not None and isinstance(request, self.failing[1]):
            raise self.failing[0]
        return super().answer(request)


class World:
    """The API of two Regions, each on a table of its own; they do not replicate."""

    def __init__(self, level: str = "INFO") -> None:
        self.tables = {region: Table() for region in (HERE, THERE)}
        self.tables[HERE].peers, self.tables[THERE].peers = {THERE: self.tables[THERE]}, {HERE: self.tables[HERE]}
        self.here, self.there = (
            Client(table, settings=replace(SETTINGS, region=region), level=level)
            for region, table in self.tables.items()
        )

    def add(self, change: int, key: str = "k", there: bool = False, **more: object) -> Answer:
        return (self.there if there else self.here).add(change, key, COUNTER, at=AT, **more)

    def hold(self, amount: object, key: str | None = "k", there: bool = False, **more: object) -> Answer:
        client, said = self.there if there else self.here, {"counter": COUNTER, "amount": amount}
        headers = {} if key is None else {"Idempotency-Key": key}
        return client.ask("POST", f"/counters/{COUNTER}/holds", said | {"expires_s": 60, "at": AT} | more, headers)

    def end(self, id: str, how: str, there: bool = False, counter: str = COUNTER, **more: object) -> Answer:
        path = f"/counters/{COUNTER}/holds/{quote(id, safe='')}/{how}"
        return (self.there if there else self.here).ask("POST", path, {"counter": counter, **more})

    def standing(self, there: bool = False) -> Any:
        return (self.there if there else self.here).ask("GET", f"/standing?counter={COUNTER}").said

    def fail(self, region: str, error: Exception | None, *kinds: type) -> None:
        self.tables[region].failing = (error, kinds) if error is not None else None


EVERY = (Get, GetMany, Query, Put, Update, Delete)


def refused(answer: Answer, status: int, name: str) -> None:
    assert (answer.status, answer.problem) == (status, name)
    assert ("Retry-After" in answer.headers) == (status in (429, 503, 504))


def counted(client: Client, name: str) -> float:
    return float(sum(client.metrics.metric_set.get(name, {"Value": []})["Value"]))


def test_a_change_beyond_the_limit_is_refused_for_ever_and_counts_nothing() -> None:
    world = World()
    assert world.add(8, "a").status == 201
    answer = world.add(3, "b")
    refused(answer, 409, "limit-reached")
    assert {"region", "token"} <= answer.said.keys()
    assert "Nothing was written" not in answer.said["detail"]
    assert world.add(-5, "c").status == 201
    refused(world.add(3, "b"), 409, "limit-reached")
    assert world.add(3, "d").status == 201
    assert world.here.read(COUNTER).said["value"] == 6
    assert counted(world.here, observe.LIMIT_REACHED) == 2


def test_a_bulk_says_of_each_change_whether_the_limit_was_in_its_way() -> None:
    world = World()
    deltas = [{"counter": COUNTER, "change": 6, "idempotency_key": f"{n}", "at": AT} for n in range(3)]
    deltas.append({"counter": "stock", "change": 6, "idempotency_key": "k", "at": AT})
    results = world.here.ask("POST", "/deltas", {"deltas": deltas}).said["results"]
    assert [result["status"] for result in results] == [201, 409, 409, 201]
    assert results[1]["problem"]["type"] == "urn:ledger:problem:limit-reached"


def test_what_another_region_may_have_is_undecided_until_it_can_be_asked() -> None:
    world = World()
    world.add(1, "a")
    world.fail(HERE, errors.Unavailable("gone"), *EVERY)
    answer = world.add(2, "b", there=True)
    refused(answer, 503, "out-of-reach")
    refused(world.hold(2, "c", there=True), 503, "out-of-reach")
    assert counted(world.there, observe.OUT_OF_REACH) == 2
    world.fail(HERE, None)
    assert world.add(2, "b", there=True).status == 201
    assert world.hold(2, "c", there=True).status == 201
    refused(world.add(9, "d", there=True), 409, "limit-reached")


def test_a_hold_says_all_that_ends_it_and_a_repetition_says_the_same() -> None:
    world = World()
    answer = world.hold(3)
    assert answer.status == 201
    said = answer.said
    assert said["id"] == f"{said['token']}.{HERE}.0.3"
    known = {"counter": COUNTER, "amount": 3, "region": HERE, "at": "2025-01-01T09:50:00.000Z"}
    assert known.items() <= said.items()
    assert "2025-01-01T09:51:00.000Z" <= said["until"] <= "2025-01-01T09:51:00.060Z"
    assert world.hold(3).body == answer.body
    assert world.hold(3, expires_s=90.5).said["id"] != said["id"], "another length is another hold"
    refused(world.hold(4), 409, "token-conflict")
    refused(world.hold(11, "b"), 409, "limit-reached")
    assert world.standing()["available"] == {"down": None, "up": 4}


def test_a_hold_is_captured_once_in_full_or_in_part_by_any_region() -> None:
    world = World()
    whole, part, none = (world.hold(3, key).said["id"] for key in "abc")
    first, again = world.end(whole, "capture"), world.end(whole, "capture", there=True, amount=3)
    assert (first.status, again.status, again.headers["Idempotency-Hit"]) == (201, 200, "true")
    assert first.said | {"outcome": "replayed"} == again.said
    assert {"counter": COUNTER, "change": 3, "token": whole[:26], "region": HERE}.items() <= first.said.items()
    assert world.end(part, "capture", amount=1).said["change"] == 1
    assert world.end(none, "capture", amount=0).said["change"] == 0
    for id, amount in ((whole, 2), (part, 2), (part, None), (none, 3)):
        answer = world.end(id, "capture", amount=amount)
        refused(answer, 409, "hold-ended")
        assert answer.said["state"] == "captured"
        assert answer.said.keys() == {"type", "title", "status", "detail", "state"}, "no amount"
    assert world.here.read(COUNTER).said["value"] == 4
    assert counted(world.here, observe.DELTAS_RECORDED) == 3
    entries = world.here.history(COUNTER).said["entries"]
    assert {entry["token"]: entry["change"] for entry in entries} == {whole[:26]: 3, part[:26]: 1, none[:26]: 0}


def test_a_hold_is_released_once_and_again_and_is_then_over() -> None:
    world = World()
    id = world.hold(10).said["id"]
    refused(world.add(1, "a"), 409, "limit-reached")
    for there in (False, True):
        answer = world.end(id, "release", there=there)
        assert (answer.status, answer.body) == (204, "")
    for answer in (world.end(id, "capture"), world.hold(10)):
        refused(answer, 409, "hold-ended")
        assert answer.said["state"] == "released"
    assert world.add(10, "b").status == 201


def test_a_hold_whose_time_is_over_is_ended_by_who_is_short_of_it() -> None:
    world = World()
    id = world.hold(10).said["id"]
    world.here.now_ms += 61_000
    assert world.add(10, "a").status == 201
    for answer in (world.end(id, "capture"), world.end(id, "release"), world.hold(10)):
        refused(answer, 409, "hold-ended")
        assert answer.said["state"] == "expired"
    refused(world.hold(1, "b"), 422, "invalid-time")


def test_a_fail_over_names_the_region_of_a_hold() -> None:
    world = World()
    first = world.hold(3)
    assert world.hold(3, there=True, region=HERE).body == first.body
    assert world.hold(3, there=True).said["id"] != first.said["id"]
    refused(world.hold(3, region="mars-north-1"), 404, "no-such-region")


@pytest.mark.parametrize(
    "id",
    [
        MADE_UP,
        MADE_UP.lower(),
        MADE_UP + "0",
        MADE_UP.replace(".0.", ".7."),
        MADE_UP.replace(HERE, "mars-north-1"),
        MADE_UP[:-1] + "0",
        MADE_UP[:-1] + "3" * 5_000,
        *("x", "a/b", "%41", "b\u00fc", "...", ULID),
    ],
)
def test_an_id_that_is_not_that_of_a_hold_of_the_counter_ends_nothing(id: str) -> None:
    world = World()
    good = world.hold(3).said["id"]
    for how in ("capture", "release"):
        refused(world.end(id, how), 404, "no-such-hold")
        for damaged in (good.replace(".3", ".4"), good.replace(HERE, THERE)):
            refused(world.end(damaged, how), 404, "no-such-hold")
    assert world.end(good, "capture").status == 201


def test_a_hold_that_was_refused_is_not_one_to_end() -> None:
    world = World()
    refused(world.hold(11), 409, "limit-reached")
    ((token, _),) = world.tables[HERE].items[gate_key(Lane(HERE, 0, COUNTER))]["recent"]["M"].items()
    for how in ("capture", "release"):
        refused(world.end(f"{token}.{HERE}.0.11", how), 404, "no-such-hold")


def test_a_hold_of_another_counter_ends_nothing() -> None:
    world = World()
    id = world.hold(3).said["id"]
    refused(world.end(id, "release", counter="seats:b"), 404, "other-counter")
    answer = world.here.ask("POST", f"/counters/seats:b/holds/{id}/release", {"counter": "seats:b"})
    refused(answer, 404, "no-such-hold")


@pytest.mark.parametrize("amount", [4, -1, 10**18])
def test_more_than_was_held_or_of_another_sign_is_not_captured(amount: int) -> None:
    world = World()
    id = world.hold(3).said["id"]
    refused(world.end(id, "capture", amount=amount), 422, "invalid-change")
    assert world.end(id, "capture").status == 201


@pytest.mark.parametrize("more", [{"amount": 1.0}, {"amount": "1"}, {"amount": 10**19}, {"note": 1}])
def test_a_capture_that_is_not_as_described_is_refused_and_a_release_has_no_amount(more: dict[str, Any]) -> None:
    world = World()
    id = world.hold(3).said["id"]
    for answer in (world.end(id, "capture", **more), world.end(id, "release", **more)):
        refused(answer, 422, "invalid-request")
    assert world.standing()["held"]["up"] == 3


@pytest.mark.parametrize(
    "more",
    [
        *({"expires_s": length} for length in (0, -1, HOLD_S_MAX + 1, "60", True, None, "PT1M")),
        *({"amount": amount} for amount in (1.5, "1", True, None, 10**18 + 1)),
        *({"note": "x"}, {"expires": 60}, {"at": "yesterday"}, {"counter": None}),
    ],
)
def test_a_hold_that_is_not_as_described_is_refused(more: dict[str, Any]) -> None:
    world = World()
    refused(world.hold(**{"amount": 1} | more), 422, "invalid-request")
    assert world.tables[HERE].items == {}


def test_a_hold_has_a_key_and_a_time_as_a_change_has() -> None:
    world = World()
    for key in (None, " "):
        refused(world.hold(1, key), 400, "idempotency-key-missing")
    refused(world.hold(1, at=None), 422, "invalid-time")
    refused(world.hold(1, at="2999-01-01T00:00:00Z"), 422, "invalid-time")
    refused(world.hold(1, at="2025-01-01T09:48:00Z"), 422, "invalid-time")
    refused(world.hold(0), 422, "invalid-change")
    assert world.hold(1, ULID, at=None, expires_s=HOLD_S_MAX).status == 201
    assert world.hold(1, "a", expires_s=0.001).status == 201


def test_a_counter_without_a_limit_has_no_holds_and_no_standing() -> None:
    client = Client()
    body = {"counter": "stock", "amount": 1, "expires_s": 60, "at": AT}
    refused(client.ask("POST", "/counters/stock/holds", body, {"Idempotency-Key": "k"}), 404, "no-limit")
    refused(client.ask("POST", f"/counters/stock/holds/{MADE_UP}/capture", {"counter": "stock"}), 404, "no-limit")
    refused(client.ask("GET", "/standing?counter=stock"), 404, "no-limit")
    assert client.table.items == {}


def test_a_standing_says_what_is_left_held_and_elsewhere() -> None:
    world = World()
    world.add(2, "a")
    world.hold(3, "b")
    said = world.standing()
    free, none = {"down": None, "up": 5}, {"down": None, "up": 0}
    known = {"counter": COUNTER, "value": 2, "count": 1, "floor": None, "ceiling": 10, "here": free, "available": free}
    assert said == known | {
        "moving": none,
        "held": free | {"up": 3},
        "as_of": "2025-01-01T09:50:00.000Z",
        "closed": True,
    }
    again = world.here.ask("GET", f"/counters/{COUNTER}/standing?counter={COUNTER}&consistent=false")
    assert again.said == said
    assert world.there.ask("GET", f"/standing?counter={COUNTER}&consistent=no").said["here"] == none
    refused(world.here.ask("GET", f"/counters/{COUNTER}/standing?counter=seats:b"), 404, "other-counter")
    refused(world.here.ask("GET", f"/counters/{COUNTER}/standing"), 422, "invalid-request")


def test_a_balance_says_whether_it_is_certainly_within_the_limit() -> None:
    world = World()
    assert world.add(4, "a", there=True).status == 201, (
        "with rights from the other Region, whose gate is not seen there"
    )
    assert world.there.read(COUNTER).said["closed"] is False
    assert world.here.read(COUNTER).said["closed"] is True


FAILURES: list[tuple[Exception, int, str]] = [
    (errors.Throttled("no"), 429, "throttled"),
    (errors.Unavailable("no"), 503, "unavailable"),
    (errors.GaveUp("no"), 503, "unavailable"),
    (errors.OutcomeUnknown("no"), 504, "outcome-unknown"),
    (errors.LimitMismatch("no"), 500, "misconfigured"),
    (errors.NotAllowed("no"), 500, "misconfigured"),
    (errors.GateLost("no"), 500, "damaged"),
    (errors.DamagedItem("pk", "sk", "123454321"), 500, "damaged"),
]


@pytest.mark.parametrize(("error", "status", "name"), FAILURES)
def test_a_failure_says_what_to_do_next_whatever_was_asked(error: Exception, status: int, name: str) -> None:
    world = World()
    id = world.hold(3).said["id"]
    world.fail(HERE, error, Update)
    for answer in (world.add(1, "a"), world.hold(1, "b"), world.end(id, "capture"), world.end(id, "release")):
        refused(answer, status, name)
        unsure = name == "outcome-unknown" or isinstance(error, errors.GaveUp)
        assert ("Nothing was written" in answer.said["detail"]) == (not unsure)
    world.fail(HERE, error, GetMany)
    refused(world.here.ask("GET", f"/standing?counter={COUNTER}"), status, name)


def test_a_gate_that_is_gone_or_of_other_sides_decides_nothing() -> None:
    world = World()
    world.add(1, "a", there=True)
    del world.tables[HERE].items[gate_key(Lane(HERE, 0, COUNTER))]
    world.tables[HERE].answer(Put(world.tables[THERE].items[gate_key(Lane(THERE, 0, COUNTER))]))  # as it is replicated
    refused(world.add(1, "b"), 500, "damaged")
    refused(world.hold(1, "c"), 500, "damaged")
    table = Table()
    floor = Client(table, settings=replace(SETTINGS, limits={"seats:": Limit(floor=0)}))
    assert floor.add(1, "a", COUNTER, at=AT).status == 201
    other = Client(table)
    refused(other.add(1, "b", COUNTER, at=AT), 500, "misconfigured")


def test_no_line_above_debug_names_an_amount_of_a_hold() -> None:
    for level, told in (("INFO", False), ("DEBUG", True)):
        world = World(level)
        world.hold(123_454_321)
        world.end(f"{ULID}.{HERE}.0.123454321", "capture")
        id = world.hold(3, "a").said["id"]
        world.end(id, "capture", amount=123_454_321)
        world.add(123_454_321, "b")
        assert ("123454321" in world.here.lines.getvalue()) == told


@pytest.mark.parametrize(
    "name", ["seats:x/holds", "seats:a/holds/b/capture", "seats:a/standing", "seats:/", "seats:a b"]
)
def test_a_path_ends_in_what_is_asked_whatever_the_counter_is_called(name: str) -> None:
    client = Client()
    path = f"/counters/{quote(name, safe='')}"
    body = {"counter": name, "amount": 1, "expires_s": 60, "at": AT}
    held = client.ask("POST", f"{path}/holds", body, {"Idempotency-Key": "k"})
    if " " in name:
        refused(held, 404, "invalid-counter")
        return
    assert held.said["counter"] == name
    assert client.ask("POST", f"{path}/holds/{held.said['id']}/capture", {"counter": name}).status == 201
    assert client.ask("GET", f"{path}/standing?counter={quote(name, safe='')}").said["value"] == 1
    assert client.ask("GET", f"{path}/holds/x/capture").headers["Allow"] == "POST, OPTIONS"
