"""Limited counters over HTTP: what is decided, held, captured, released and answered, in two Regions."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from ledger import Limit, errors
from ledger.gate.items import gate_key
from ledger.requests import Delete, Get, GetMany, Put, Query, Update
from ledger.values import Lane
from service import observe
from service.api.models import HOLD_S_MAX
from tests.service.http_client import HERE, SETTINGS, THERE, ULID, Answer, Client, Table, refused

COUNTER = "seats:gig"
AT = "2025-01-01T09:50:00Z"
EVERY = (Get, GetMany, Query, Put, Update, Delete)


class TwoRegions:
    """The API of two Regions, each on a table of its own; they do not replicate."""

    def __init__(self, level: str = "INFO") -> None:
        self.tables = tables = {region: Table() for region in (HERE, THERE)}
        tables[HERE].peers, tables[THERE].peers = {THERE: tables[THERE]}, {HERE: tables[HERE]}
        self.here, self.there = (
            Client(table, settings=replace(SETTINGS, region=region), level=level) for region, table in tables.items()
        )

    def add(self, change: int, key: str = "k", there: bool = False, **more: object) -> Answer:
        return (self.there if there else self.here).add(change, key, COUNTER, at=AT, **more)

    def hold(self, amount: object, key: str | None = "k", there: bool = False, **more: object) -> Answer:
        body = {"counter": COUNTER, "amount": amount, "expires_s": 60, "at": AT} | more
        headers = {} if key is None else {"Idempotency-Key": key}
        return (self.there if there else self.here).ask("POST", f"/counters/{COUNTER}/holds", body, headers)

    def end(self, id: str, how: str, there: bool = False, counter: str = COUNTER, **more: object) -> Answer:
        path = f"/counters/{COUNTER}/holds/{quote(id, safe='')}/{how}"
        return (self.there if there else self.here).ask("POST", path, {"counter": counter, **more})

    def standing(self, query: str = "", there: bool = False) -> Any:
        return (self.there if there else self.here).ask("GET", f"/standing?counter={COUNTER}{query}").said


def counted(client: Client, name: str) -> float:
    return float(sum(client.metrics.metric_set.get(name, {"Value": []})["Value"]))


def test_a_change_beyond_the_limit_is_refused_for_ever_and_counts_nothing() -> None:
    regions = TwoRegions()
    assert regions.add(8, "a").status == 201
    answer = regions.add(3, "b")
    refused(answer, 409, "limit-reached")
    assert {"region", "token"} <= answer.said.keys()
    assert "Nothing was written" not in answer.said["detail"]
    assert regions.add(-5, "c").status == 201
    refused(regions.add(3, "b"), 409, "limit-reached")
    assert regions.add(3, "d").status == 201
    assert regions.here.read(COUNTER).said["value"] == 6
    assert counted(regions.here, observe.LIMIT_REACHED) == 2
    deltas = [{"counter": COUNTER, "change": 3, "idempotency_key": f"{n}", "at": AT} for n in range(3)]
    deltas.append({"counter": "stock", "change": 6, "idempotency_key": "k", "at": AT})
    results = regions.here.ask("POST", "/deltas", {"deltas": deltas}).said["results"]
    assert [result["status"] for result in results] == [201, 409, 409, 201]
    assert results[1]["problem"]["type"] == "urn:ledger:problem:limit-reached"


def test_what_another_region_may_have_is_undecided_until_it_can_be_asked() -> None:
    regions = TwoRegions()
    regions.add(1, "a")
    regions.tables[HERE].fail(errors.Unavailable("gone"), *EVERY)
    refused(regions.add(2, "b", there=True), 503, "out-of-reach")
    refused(regions.hold(2, "c", there=True), 503, "out-of-reach")
    assert counted(regions.there, observe.OUT_OF_REACH) == 2
    regions.tables[HERE].fail(None)
    assert regions.add(2, "b", there=True).status == 201
    assert regions.hold(2, "c", there=True).status == 201
    refused(regions.add(9, "d", there=True), 409, "limit-reached")


def test_a_hold_says_all_that_ends_it_and_a_repetition_says_the_same_in_a_fail_over_too() -> None:
    regions = TwoRegions()
    answer = regions.hold(3)
    assert answer.status == 201
    said = answer.said
    assert said["id"] == f"{said['token']}.{HERE}.0.3"
    known = {"counter": COUNTER, "amount": 3, "region": HERE, "at": "2025-01-01T09:50:00.000Z"}
    assert known.items() <= said.items()
    assert "2025-01-01T09:51:00.000Z" <= said["until"] <= "2025-01-01T09:51:00.060Z"
    assert regions.hold(3).body == regions.hold(3, there=True, region=HERE).body == answer.body
    assert regions.hold(3, expires_s=90.5).said["id"] != said["id"], "another length is another hold"
    refused(regions.hold(4), 409, "token-conflict")
    refused(regions.hold(11, "b"), 409, "limit-reached")
    assert regions.standing()["available"] == {"down": None, "up": 4}
    assert regions.hold(3, there=True).said["region"] == THERE
    refused(regions.hold(3, region="mars-north-1"), 404, "no-such-region")


def test_a_hold_is_captured_once_in_full_or_in_part_by_any_region() -> None:
    regions = TwoRegions()
    whole, part, none = (regions.hold(3, key).said["id"] for key in "abc")
    first, again = regions.end(whole, "capture"), regions.end(whole, "capture", there=True, amount=3)
    assert (first.status, again.status, again.headers["Idempotency-Hit"]) == (201, 200, "true")
    assert first.said | {"outcome": "replayed"} == again.said
    assert {"counter": COUNTER, "change": 3, "token": whole[:26], "region": HERE}.items() <= first.said.items()
    assert regions.end(part, "capture", amount=1).said["change"] == 1
    assert regions.end(none, "capture", amount=0).said["change"] == 0
    for id, amount in ((whole, 2), (part, 2), (part, None), (none, 3)):
        answer = regions.end(id, "capture", amount=amount)
        refused(answer, 409, "hold-ended")
        assert answer.said["state"] == "captured"
        assert answer.said.keys() == {"type", "title", "status", "detail", "state"}, "no amount"
    assert regions.here.read(COUNTER).said["value"] == 4
    assert counted(regions.here, observe.DELTAS_RECORDED) == 3
    entries = regions.here.history(COUNTER).said["entries"]
    assert {entry["token"]: entry["change"] for entry in entries} == {whole[:26]: 3, part[:26]: 1, none[:26]: 0}


def test_a_hold_is_released_once_and_again_and_is_then_over() -> None:
    regions = TwoRegions()
    id = regions.hold(10).said["id"]
    refused(regions.add(1, "a"), 409, "limit-reached")
    for there in (False, True):
        answer = regions.end(id, "release", there=there)
        assert (answer.status, answer.body) == (204, "")
    for answer in (regions.end(id, "capture"), regions.hold(10)):
        refused(answer, 409, "hold-ended")
        assert answer.said["state"] == "released"
    assert regions.add(10, "b").status == 201


def test_a_hold_whose_time_is_over_is_ended_by_who_is_short_of_it() -> None:
    regions = TwoRegions()
    id = regions.hold(10).said["id"]
    regions.here.now_ms += 61_000
    assert regions.add(10, "a").status == 201
    for answer in (regions.end(id, "capture"), regions.end(id, "release"), regions.hold(10)):
        refused(answer, 409, "hold-ended")
        assert answer.said["state"] == "expired"
    refused(regions.hold(1, "b"), 422, "invalid-time")


def test_an_id_that_is_not_that_of_a_hold_of_the_counter_ends_nothing() -> None:
    regions = TwoRegions()
    refused(regions.hold(11, "refused"), 409, "limit-reached")
    ((token, _),) = regions.tables[HERE].items[gate_key(Lane(HERE, 0, COUNTER))]["recent"]["M"].items()
    made_up, good = f"{ULID}.{HERE}.0.3", regions.hold(3).said["id"]
    damaged = (good.replace(".3", ".4"), good.replace(HERE, THERE), f"{token}.{HERE}.0.11")
    changed = (made_up.lower(), made_up + "0", made_up.replace(".0.", ".7."), made_up.replace(HERE, "mars-north-1"))
    cut = (made_up[:-1] + "0", made_up[:-1] + "3" * 5_000, "x", "a/b", "%41", "b\u00fc", "...", ULID)
    for how in ("capture", "release"):
        for id in (made_up, *damaged, *changed, *cut):
            refused(regions.end(id, how), 404, "no-such-hold")
    refused(regions.end(good, "release", counter="seats:b"), 404, "other-counter")
    answer = regions.here.ask("POST", f"/counters/seats:b/holds/{good}/release", {"counter": "seats:b"})
    refused(answer, 404, "no-such-hold")
    for amount in (4, -1, 10**18):
        refused(regions.end(good, "capture", amount=amount), 422, "invalid-change")
    wrong: tuple[dict[str, Any], ...] = ({"amount": 1.0}, {"amount": "1"}, {"amount": 10**19}, {"note": 1})
    for more in wrong:
        for how in ("capture", "release"):
            refused(regions.end(good, how, **more), 422, "invalid-request")
    refused(regions.end(good, "release", amount=1), 422, "invalid-request")
    assert regions.standing()["held"]["up"] == 3
    assert regions.end(good, "capture").status == 201


def test_a_hold_that_is_not_as_described_is_refused() -> None:
    regions = TwoRegions()
    lengths: tuple[object, ...] = (0, -1, HOLD_S_MAX + 1, "60", True, None, "PT1M")
    amounts: tuple[object, ...] = (1.5, "1", True, None, 10**18 + 1)
    wrong: list[dict[str, Any]] = [{"note": "x"}, {"expires": 60}, {"at": "yesterday"}, {"counter": None}]
    wrong += [*({"expires_s": length} for length in lengths), *({"amount": amount} for amount in amounts)]
    for more in wrong:
        refused(regions.hold(**{"amount": 1} | more), 422, "invalid-request")
    assert regions.tables[HERE].items == {}
    for key in (None, " "):
        refused(regions.hold(1, key), 400, "idempotency-key-missing")
    for at in (None, "2999-01-01T00:00:00Z", "2025-01-01T09:48:00Z"):
        refused(regions.hold(1, at=at), 422, "invalid-time")
    refused(regions.hold(0), 422, "invalid-change")
    assert regions.hold(1, ULID, at=None, expires_s=HOLD_S_MAX).status == 201
    assert regions.hold(1, "a", expires_s=0.001).status == 201


def test_a_counter_without_a_limit_has_no_holds_and_no_standing() -> None:
    client = Client()
    body = {"counter": "stock", "amount": 1, "expires_s": 60, "at": AT}
    refused(client.ask("POST", "/counters/stock/holds", body, {"Idempotency-Key": "k"}), 404, "no-limit")
    made_up = f"/counters/stock/holds/{ULID}.{HERE}.0.3/capture"
    refused(client.ask("POST", made_up, {"counter": "stock"}), 404, "no-limit")
    refused(client.ask("GET", "/standing?counter=stock"), 404, "no-limit")
    assert client.table.items == {}


def test_a_standing_says_what_is_left_held_and_elsewhere_and_a_balance_whether_it_is_within() -> None:
    regions = TwoRegions()
    regions.add(2, "a")
    regions.hold(3, "b")
    free, none = {"down": None, "up": 5}, {"down": None, "up": 0}
    known = {"counter": COUNTER, "value": 2, "count": 1, "floor": None, "ceiling": 10, "here": free, "available": free}
    known |= {"moving": none, "held": free | {"up": 3}, "as_of": "2025-01-01T09:50:00.000Z", "closed": True}
    assert regions.standing() == regions.standing("&consistent=false") == known
    assert regions.tables[HERE].strong[-2:] == [True, False]
    assert regions.standing("&consistent=no", there=True)["here"] == none
    assert regions.add(4, "c", there=True).status == 201, "with rights of the other Region, whose gate is not seen"
    assert regions.there.read(COUNTER).said["closed"] is False
    assert regions.here.read(COUNTER).said["closed"] is True


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


def test_a_failure_says_what_to_do_next_whatever_was_asked() -> None:
    for error, status, name in FAILURES:
        regions = TwoRegions()
        id = regions.hold(3).said["id"]
        regions.tables[HERE].fail(error, Update)
        answers = [regions.add(1, "a"), regions.hold(1, "b"), regions.end(id, "capture"), regions.end(id, "release")]
        for answer in answers:
            refused(answer, status, name)
            unsure = isinstance(error, errors.OutcomeUnknown | errors.GaveUp)
            assert ("Nothing was written" in answer.said["detail"]) == (not unsure)
        regions.tables[HERE].fail(error, GetMany)
        refused(regions.here.ask("GET", f"/standing?counter={COUNTER}"), status, name)


def test_a_gate_that_is_gone_or_of_other_sides_decides_nothing() -> None:
    regions = TwoRegions()
    regions.add(1, "a", there=True)
    here, there = regions.tables[HERE], regions.tables[THERE]
    del here.items[gate_key(Lane(HERE, 0, COUNTER))]
    here.answer(Put(there.items[gate_key(Lane(THERE, 0, COUNTER))]))  # as it is replicated
    refused(regions.add(1, "b"), 500, "damaged")
    refused(regions.hold(1, "c"), 500, "damaged")
    table = Table()
    floor = Client(table, settings=replace(SETTINGS, limits={"seats:": Limit(floor=0)}))
    assert floor.add(1, "a", COUNTER, at=AT).status == 201
    refused(Client(table).add(1, "b", COUNTER, at=AT), 500, "misconfigured")


def test_no_line_above_debug_names_an_amount_of_a_hold() -> None:
    for level, shown in (("INFO", False), ("DEBUG", True)):
        regions = TwoRegions(level)
        regions.hold(123_454_321)
        regions.end(f"{ULID}.{HERE}.0.123454321", "capture")
        id = regions.hold(3, "a").said["id"]
        regions.end(id, "capture", amount=123_454_321)
        regions.add(123_454_321, "b")
        assert ("123454321" in regions.here.lines.getvalue()) == shown


def test_a_path_ends_in_what_is_asked_whatever_the_counter_is_called() -> None:
    for name in ("seats:x/holds", "seats:a/holds/b/capture", "seats:a/standing", "seats:/"):
        client = Client()
        path = f"/counters/{quote(name, safe='')}"
        body = {"counter": name, "amount": 1, "expires_s": 60, "at": AT}
        held = client.ask("POST", f"{path}/holds", body, {"Idempotency-Key": "k"})
        assert held.said["counter"] == name
        assert client.ask("POST", f"{path}/holds/{held.said['id']}/capture", {"counter": name}).status == 201
        assert client.ask("GET", f"/standing?counter={quote(name, safe='')}").said["value"] == 1
        assert client.ask("GET", f"{path}/holds/x/capture").headers["Allow"] == "POST, OPTIONS"
