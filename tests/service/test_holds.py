"""Limited counters over HTTP: what is decided, held, captured, released and answered, in two
Regions.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from ledger import Limit
from ledger.core.requests import GetMany
from ledger.core.values import Lane
from ledger.gate.items import gate_key
from service.api.models import HOLD_ID, HOLD_S_MAX
from tests.service import support
from tests.service.support import ULID, Answer, Service
from tests.world import A, B

SEATS = "seats:gig"
AT = "2025-01-01T09:50:00Z"
LIMITS = {"seats:": Limit(ceiling=10, region=A)}
web, two = partial(support.web, limits=LIMITS), partial(support.two_webs, limits=LIMITS)


def add(service: Service, change: int, key: str = "k") -> Answer:
    return service.add(change, key, SEATS, at=AT)


def hold(service: Service, amount: object, key: str | None = "k", **more: object) -> Answer:
    return service.post(
        "holds", {"counter": SEATS, "amount": amount, "expires_s": 60, "at": AT} | more, key
    )


def end(service: Service, id: str, how: str, counter: str = SEATS, **more: object) -> Answer:
    path = f"/counters/{SEATS}/holds/{quote(id, safe='')}/{how}"
    return service.ask("POST", path, {"counter": counter, **more})


def standing(service: Service, query: str = "") -> Any:
    return service.ask("GET", f"/standing?counter={SEATS}{query}").said


def test_a_change_beyond_the_limit_is_refused_for_ever() -> None:
    service = web()
    assert add(service, 8, "a").status == 201
    said = add(service, 3, "b").refused(409, "limit-reached")
    assert ({"region", "token"} <= said.keys(), "Nothing was written" in said["detail"]) == (
        True,
        False,
    )
    assert add(service, -5, "c").status == 201
    add(service, 3, "b").refused(409, "limit-reached")
    assert add(service, 3, "d").status == 201
    assert (service.value(SEATS), service.counted("LimitReached")) == (6, 2)
    deltas = [
        {"counter": SEATS, "change": 3, "idempotency_key": f"{n}", "at": AT} for n in range(3)
    ]
    results = service.ask(
        "POST", "/deltas", {"deltas": [*deltas, deltas[0] | {"counter": "stock"}]}
    ).said["results"]
    assert [result["status"] for result in results] == [201, 409, 409, 201]
    assert results[1]["problem"]["type"] == "urn:ledger:problem:limit-reached"


def test_a_part_of_a_change_counts_and_is_answered_with_it() -> None:
    service = web()
    assert add(service, 8, "a").said.keys().isdisjoint(("change", "asked", "partial"))
    answer = service.add(5, "b", SEATS, at=AT, partial=True)
    assert (answer.status, answer.said["change"], answer.said["asked"]) == (201, 2, 5)
    again = service.add(7, "b", SEATS, at=AT, partial=True)
    assert (again.status, again.said["change"], again.said["asked"]) == (200, 2, 7)
    service.add(1, "b", SEATS, at=AT, partial=True).refused(409, "token-conflict")
    said = service.add(5, "c", SEATS, at=AT, partial=True).refused(409, "limit-reached")
    assert said.keys().isdisjoint(("token", "region")), "nobody may apply it"
    service.add(5, "b", SEATS, at=AT).refused(409, "limit-reached")
    for change, counter, status, problem in (
        (0, SEATS, 422, "invalid-change"),
        (-1, SEATS, 422, "invalid-change"),
        (1, "stock", 404, "no-limit"),
    ):
        said = service.add(change, "d", counter, at=AT, partial=True).refused(status, problem)
        assert re.search("leave (it out|out partial)", said["detail"])
    service.add(1, "d", SEATS, at=AT, partial=1).refused(422, "invalid-request")
    add(service, -3, "e")
    of = {"counter": SEATS, "at": AT}
    deltas = [
        of | {"change": 1, "idempotency_key": "f"},
        of | {"change": 9, "idempotency_key": "g", "partial": True},
        of | {"change": 9, "idempotency_key": "h", "partial": True},
        of | {"change": 0, "idempotency_key": "i", "partial": True},
    ]
    results = service.ask("POST", "/deltas", {"deltas": deltas}).said["results"]
    assert [result["status"] for result in results] == [201, 201, 409, 422]
    assert results[0]["added"].keys().isdisjoint(("change", "asked"))
    assert (results[1]["added"]["change"], results[1]["added"]["asked"]) == (2, 9)
    assert service.value(SEATS) == 10


def test_a_hold_says_all_that_ends_it_each_time() -> None:
    here, there = two()
    answer = hold(here, 3)
    said = answer.said
    assert (answer.status, said["id"]) == (201, f"{said['token']}.{A}.0.3")
    assert {
        "counter": SEATS,
        "amount": 3,
        "region": A,
        "at": "2025-01-01T09:50:00.000Z",
    }.items() <= said.items()
    assert "2025-01-01T09:51:00.000Z" <= said["until"] <= "2025-01-01T09:51:00.060Z"
    assert hold(here, 3).body == hold(there, 3, region=A).body == answer.body
    assert hold(here, 3, expires_s=90.5).said["id"] != said["id"], "another length is another hold"
    hold(here, 4).refused(409, "token-conflict")
    hold(here, 11, "b").refused(409, "limit-reached")
    assert standing(here)["available"] == {"down": None, "up": 4}
    assert hold(there, 3).said["region"] == B
    hold(here, 3, region="mars-north-1").refused(404, "no-such-region")


def test_a_hold_is_captured_once_by_any_region() -> None:
    here, there = two()
    whole, part, none = (hold(here, 3, key).said["id"] for key in "abc")
    first, again = end(here, whole, "capture"), end(there, whole, "capture", amount=3)
    assert (first.status, again.status, again.headers["Idempotency-Hit"]) == (201, 200, "true")
    assert first.said | {"outcome": "replayed"} == again.said
    assert {
        "counter": SEATS,
        "change": 3,
        "token": whole[:26],
        "region": A,
    }.items() <= first.said.items()
    assert [
        end(here, id, "capture", amount=n).said["change"] for n, id in ((1, part), (0, none))
    ] == [1, 0]
    for id, amount in ((whole, 2), (part, 2), (part, None), (none, 3)):
        said = end(here, id, "capture", amount=amount).refused(409, "hold-ended")
        assert said["state"] == "captured"
        assert said.keys() == {"type", "title", "status", "detail", "state"}, "no amount"
    assert (here.value(SEATS), here.counted("DeltasRecorded")) == (4, 3)
    entries = here.history(SEATS).said["entries"]
    assert {entry["token"]: entry["change"] for entry in entries} == {
        whole[:26]: 3,
        part[:26]: 1,
        none[:26]: 0,
    }


def test_a_hold_is_released_once_or_ended_by_who_is_short() -> None:
    here, there = two()
    id = hold(here, 10).said["id"]
    add(here, 1, "a").refused(409, "limit-reached")
    for service in (here, there):
        answer = end(service, id, "release")
        assert (answer.status, answer.body) == (204, "")
    for answer in (end(here, id, "capture"), hold(here, 10)):
        assert answer.refused(409, "hold-ended")["state"] == "released"
    id = hold(here, 10, "b").said["id"]
    here.now_ms += 61_000
    assert add(here, 10, "c").status == 201
    for answer in (end(here, id, "capture"), end(here, id, "release"), hold(here, 10, "b")):
        assert answer.refused(409, "hold-ended")["state"] == "expired"
    hold(here, 1, "d").refused(422, "invalid-time")


def test_an_id_of_another_hold_ends_nothing() -> None:
    service = web()
    hold(service, 11, "refused").refused(409, "limit-reached")
    ((token, _),) = service.items[gate_key(Lane(A, 0, SEATS))]["recent"]["M"].items()
    made_up, good = f"{ULID}.{A}.0.3", hold(service, 3).said["id"]
    assert re.fullmatch(HOLD_ID, good)
    fits = [
        re.fullmatch(HOLD_ID, f"{ULID}.{A}.0.{amount}")
        for amount in (10**18, -(10**18), 10**18 + 1, 0)
    ]
    assert [*map(bool, fits)] == [True, True, False, False]
    damaged = (good.replace(".3", ".4"), good.replace(A, B), f"{token}.{A}.0.11")
    changed = (
        made_up.lower(),
        made_up + "0",
        made_up.replace(".0.", ".7."),
        made_up.replace(A, "mars-north-1"),
    )
    cut = (
        made_up[:-1] + "0",
        made_up[:-1] + "3" * 5_000,
        "x",
        "a/b",
        "%41",
        "b\u00fc",
        "...",
        ULID,
    )
    for how in ("capture", "release"):
        for id in (made_up, *damaged, *changed, *cut):
            end(service, id, how).refused(404, "no-such-hold")
    end(service, good, "release", counter="seats:b").refused(404, "other-counter")
    service.post(f"holds/{good}/release", {"counter": "seats:b"}).refused(404, "no-such-hold")
    for amount in (4, -1, 10**18):
        end(service, good, "capture", amount=amount).refused(422, "invalid-change")
    wrong: tuple[Mapping[str, Any], ...] = (
        {"amount": 1.0},
        {"amount": "1"},
        {"amount": 10**19},
        {"note": 1},
    )
    for more in wrong:
        for how in ("capture", "release"):
            end(service, good, how, **more).refused(422, "invalid-request")
    end(service, good, "release", amount=1).refused(422, "invalid-request")
    assert standing(service)["held"]["up"] == 3
    assert end(service, good, "capture").status == 201


def test_a_hold_not_as_described_is_refused() -> None:
    service = web()
    lengths: tuple[object, ...] = (0, -1, HOLD_S_MAX + 1, "60", True, None, "PT1M")
    amounts: tuple[object, ...] = (1.5, "1", True, None, 10**18 + 1)
    wrong: list[dict[str, Any]] = [{"note": "x"}, {"expires": 60}, {"at": "yesterday"}]
    wrong += [
        *({"expires_s": length} for length in lengths),
        *({"amount": amount} for amount in amounts),
    ]
    for more in wrong:
        hold(service, **{"amount": 1} | more).refused(422, "invalid-request")
    for path in ("holds", f"holds/{ULID}.{A}.0.3/capture"):
        said = {"counter": "stock"} | (
            {"amount": 1, "expires_s": 60, "at": AT} if path == "holds" else {}
        )
        service.post(path, said, "k").refused(404, "no-limit")
    service.ask("GET", "/standing?counter=stock").refused(404, "no-limit")
    assert service.items == {}
    for key in (None, " "):
        hold(service, 1, key).refused(400, "idempotency-key-missing")
    for at in (None, "2999-01-01T00:00:00Z", "2025-01-01T09:48:00Z"):
        hold(service, 1, at=at).refused(422, "invalid-time")
    for amount in (0, -1):  # below 0 it sets nothing aside under a ceiling
        hold(service, amount).refused(422, "invalid-change")
    assert hold(service, 1, ULID, at=None, expires_s=HOLD_S_MAX).status == 201
    assert hold(service, 1, "a", expires_s=0.001).status == 201


def test_a_standing_says_what_is_left_held_and_elsewhere() -> None:
    here, there = two()
    add(here, 2, "a")
    hold(here, 3, "b")
    free, none = {"down": None, "up": 5}, {"down": None, "up": 0}
    known = {
        "counter": SEATS,
        "value": 2,
        "count": 1,
        "floor": None,
        "ceiling": 10,
        "here": free,
        "available": free,
    }
    known |= {
        "moving": none,
        "held": free | {"up": 3},
        "as_of": "2025-01-01T09:50:00.000Z",
        "closed": True,
    }
    here.asked.clear()
    assert standing(here) == standing(here, "&consistent=false") == known
    assert [request.consistent for request in here.asked if isinstance(request, GetMany)][-2:] == [
        True,
        False,
    ]
    assert standing(there, "&consistent=no")["here"] == none
    assert add(there, 4, "c").status == 201, (
        "with rights of the other Region, whose gate is not seen"
    )
    assert (there.read(SEATS).said["closed"], here.read(SEATS).said["closed"]) == (False, True)


def test_no_line_above_debug_holds_an_amount() -> None:
    service = web()
    hold(service, 123_454_321)
    end(service, f"{ULID}.{A}.0.123454321", "capture")
    end(service, hold(service, 3, "a").said["id"], "capture", amount=123_454_321)
    add(service, 123_454_321, "b")
    assert ("123454321" in repr(service.lines()), "123454321" in repr(service.lines("debug"))) == (
        False,
        True,
    )


def test_a_path_ends_in_what_is_asked() -> None:
    for name in ("seats:x/holds", "seats:a/holds/b/capture", "seats:a/standing", "seats:/"):
        service = web()
        held = service.post(
            "holds", {"counter": name, "amount": 1, "expires_s": 60, "at": AT}, "k"
        ).said
        assert held["counter"] == name
        assert service.post(f"holds/{held['id']}/capture", {"counter": name}).status == 201
        assert service.ask("GET", f"/standing?counter={quote(name, safe='')}").said["value"] == 1
        path = f"/counters/{quote(name, safe='')}/holds/x/capture"
        assert service.ask("GET", path).headers["Allow"] == "POST, OPTIONS"
