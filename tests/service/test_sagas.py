"""Reservations and transfers over HTTP: what is answered, repeated and settled, in two Regions."""

from functools import partial
from typing import Any

import pytest

from ledger import Limit
from ledger.core.errors import Throttled
from tests.service import support
from tests.service.support import ULID, ULID_AT, Answer, Service
from tests.world import A, fail, writes_of

AT = "2025-01-01T09:50:00Z"
KEY, ORG = "llm:key", "llm:org"
ANN, BOB = "wallet:ann", "wallet:bob"
LIMITS = {
    "llm:": Limit(ceiling=10, region=A),
    "wallet:": Limit(floor=0, ceiling=100, region=A),
    "stock:": Limit(floor=0),
}
web, two = partial(support.web, limits=LIMITS), partial(support.two_webs, limits=LIMITS)


def post(service: Service, path: str, body: dict[str, Any], key: str | None = "k") -> Answer:
    return service.ask("POST", path, body, {} if key is None else {"Idempotency-Key": key})


def reserve(service: Service, amount: int, key: str | None = "k", **more: Any) -> Answer:
    wanted = {"counters": [KEY, ORG], "amount": amount, "expires_s": 60, "at": AT}
    return post(service, "/reservations", wanted | more, key)


def named(answer: Answer) -> list[dict[str, str]]:
    return [{"counter": hold["counter"], "id": hold["id"]} for hold in answer.said["holds"]]


def settle(service: Service, answer: Answer, cost: int) -> Answer:
    return post(service, "/reservations/settle", {"holds": named(answer), "cost": cost}, None)


def release(service: Service, answer: Answer) -> Answer:
    return post(service, "/reservations/release", {"holds": named(answer)}, None)


def held(service: Service) -> list[int]:
    return [
        service.ask("GET", f"/standing?counter={name}").said["held"]["up"] for name in (KEY, ORG)
    ]


def values(service: Service, *names: str) -> list[int]:
    return [service.value(name) for name in names]


def test_a_reservation_holds_once_and_says_what_ends_it() -> None:
    here, there = two()
    answer = reserve(here, 4)
    assert (answer.status, answer.said["id"], len(answer.said["holds"])) == (201, "k", 2)
    first = answer.said["holds"][0]
    assert {"counter": KEY, "amount": 4, "region": A}.items() <= first.items()
    assert first["id"] == f"{first['token']}.{A}.0.4"
    assert reserve(here, 4).body == reserve(there, 4, region=A).body == answer.body
    assert held(here) == [4, 4]
    assert reserve(here, 1, ULID, at=None, expires_s=9_000).said["holds"][0]["at"] == ULID_AT


def test_a_refused_reservation_holds_nothing_and_says_why() -> None:
    service = web()
    reserve(service, 8, "other", counters=[ORG])
    said = reserve(service, 4).refused(409, "over-budget")
    assert (said["counter"], said["available"], held(service)) == (ORG, 2, [0, 8])
    assert ("4" in said["detail"], "Nothing was written" in said["detail"]) == (False, False)
    repeated = reserve(service, 4).refused(409, "over-budget")
    assert (repeated["counter"], repeated["available"]) == (ORG, 2)
    assert service.counted("LimitReached") == 2


def test_a_settlement_counts_once_and_its_excess_stands_beside() -> None:
    here, there = two()
    answer = reserve(here, 4)
    reserve(here, 3, "other", counters=[ORG])
    for service in (here, there, here):
        done = settle(service, answer, 9)
        assert (done.status, done.said) == (200, {"over": {ORG: 2}})
        assert values(here, KEY, ORG, f"over:{ORG}", f"over:{KEY}") == [9, 7, 2, 0]
        assert held(here) == [0, 3]
    for service, cost, counts in ((here, 1, 4), (there, 8, 9), (here, 12, 9)):
        said = settle(service, answer, cost).refused(409, "hold-ended")
        assert (said["state"], said["counts"][KEY]) == ("captured", counts)
        assert not set("0123456789") & set(said["detail"])
        assert "Nothing was written" not in said["detail"]
    assert release(here, answer).status == 204
    assert values(here, KEY, ORG, f"over:{ORG}", f"over:{KEY}") == [9, 7, 2, 0]


def test_a_reservation_is_one_whatever_its_seconds() -> None:
    here, there = two()
    answer = reserve(here, 4)
    again = reserve(there, 4, region=A, expires_s=9_000, counters=[ORG, KEY])
    assert (again.status, again.said["holds"]) == (201, answer.said["holds"][::-1])
    assert held(here) == [4, 4]
    reserve(here, 3, expires_s=9_000).refused(409, "token-conflict")
    assert reserve(here, 3, counters=[KEY]).status == 201
    assert held(here) == [7, 4]
    settle(here, answer, 4)
    reserve(here, 4, expires_s=9_000).refused(409, "hold-ended")


def test_a_settlement_tries_every_counter_before_it_fails() -> None:
    service = web()
    answer = reserve(service, 4)
    service.before(writes_of(KEY), fail(Throttled("slower")), 5)
    said = settle(service, answer, 3).refused(429, "throttled")
    assert "those before it may count" in said["detail"]
    assert "Nothing was written" not in said["detail"]
    assert values(service, KEY, ORG) == [0, 3]
    assert settle(service, answer, 3).said == {"over": {}}
    assert values(service, KEY, ORG) == [3, 3]


def test_a_release_lets_every_hold_go_and_again_nothing_happens() -> None:
    here, there = two()
    answer = reserve(here, 4)
    for service in (here, there, here):
        done = release(service, answer)
        assert (done.status, done.body, held(here)) == (204, "", [0, 0])
    reserve(here, 4).refused(409, "hold-ended")


def test_a_transfer_moves_once_and_says_what_refused_it() -> None:
    here, there = two()
    here.post("deltas", {"counter": ANN, "change": 60, "at": AT}, "start")

    def move(service: Service, amount: int, key: str, **more: Any) -> Answer:
        return post(
            service,
            "/transfers",
            {"source": ANN, "target": BOB, "amount": amount, "at": AT} | more,
            key,
        )

    first, again = move(here, 25, "a"), move(there, 25, "a", region=A)
    assert (first.status, again.status, again.headers["Idempotency-Hit"]) == (201, 200, "true")
    said = {"outcome": "moved", "source": ANN, "target": BOB, "amount": 25, "region": A}
    assert first.said == again.said == said | {"at": "2025-01-01T09:50:00.000Z"}
    assert values(here, ANN, BOB) == [35, 25]
    assert move(here, 36, "b").refused(409, "limit-reached")["counter"] == ANN
    here.post("deltas", {"counter": "wallet:c", "change": 95, "at": AT}, "start")
    assert (
        move(here, 6, "c", target="wallet:c").refused(409, "limit-reached")["counter"] == "wallet:c"
    )
    assert values(here, ANN, "wallet:c") == [35, 95]
    here.before(writes_of("wallet:c"), lambda _: fill(there), 1)
    assert (
        "Nothing is lost"
        in move(here, 6, "d", target="wallet:c").refused(503, "transfer-stuck")["detail"]
    )


def fill(service: Service) -> None:
    """Ann's wallet, by another process."""
    service.post("deltas", {"counter": ANN, "change": 71, "at": AT, "region": A}, "fill")


def test_another_pair_of_counters_is_another_transfer() -> None:
    service = web()
    service.add(10, "start", counter=ANN, at=AT)
    service.add(98, "start", counter="wallet:full", at=AT)

    def move(source: str, target: str, amount: int = 4) -> Answer:
        return post(
            service, "/transfers", {"source": source, "target": target, "amount": amount, "at": AT}
        )

    assert move(ANN, "wallet:full").refused(409, "limit-reached")["counter"] == "wallet:full"
    for _ in range(2):
        assert move(ANN, BOB).said["outcome"] == "moved"
        assert move("wallet:none", BOB).refused(409, "limit-reached")
        assert values(service, ANN, BOB, "wallet:full") == [6, 4, 98]
    assert move(ANN, BOB, 5).refused(409, "token-conflict")
    assert values(service, ANN, BOB, "wallet:full") == [6, 4, 98]


@pytest.mark.parametrize(
    ("path", "body", "status", "problem"),
    [
        ("/reservations", {"counters": []}, 422, "invalid-request"),
        ("/reservations", {"counters": KEY}, 422, "invalid-request"),
        ("/reservations", {"counters": [f"llm:{n}" for n in range(11)]}, 422, "invalid-request"),
        ("/reservations", {"counters": [KEY, KEY]}, 422, "invalid-request"),
        ("/reservations", {"counters": [KEY, "views"]}, 404, "no-limit"),
        ("/reservations", {"counters": [KEY, "ledger:x"]}, 422, "invalid-request"),
        ("/reservations", {"counters": ["llm:" + "x" * 252]}, 422, "invalid-request"),
        ("/reservations", {"amount": 0}, 422, "invalid-request"),
        ("/reservations", {"counters": ["stock:a"]}, 422, "invalid-change"),
        ("/reservations", {"amount": -1}, 422, "invalid-request"),
        ("/reservations", {"expires_s": 0}, 422, "invalid-request"),
        ("/reservations", {"at": None}, 422, "invalid-time"),
        ("/reservations", {"region": "mars-north-1"}, 404, "no-such-region"),
        ("/reservations", {"note": "x"}, 422, "invalid-request"),
        ("/reservations/settle", {"cost": -1}, 422, "invalid-request"),
        ("/reservations/settle", {"holds": []}, 422, "invalid-request"),
        ("/reservations/settle", {"holds": [{"counter": KEY, "id": "x"}]}, 404, "no-such-hold"),
        (
            "/reservations/settle",
            {"holds": [{"counter": KEY, "id": f"{ULID}.mars-1.0.4"}]},
            404,
            "no-such-hold",
        ),
        ("/reservations/settle", {"holds": [{"counter": "views", "id": "x"}]}, 404, "no-limit"),
        (
            "/reservations/settle",
            {"holds": [{"counter": KEY, "id": f"{ULID}.{A}.0.-4"}]},
            422,
            "invalid-request",
        ),
        ("/transfers", {"amount": 0}, 422, "invalid-request"),
        ("/transfers", {"target": ANN}, 422, "invalid-request"),
        ("/transfers", {"target": "ledger:x"}, 422, "invalid-request"),
        ("/transfers", {"region": "mars-north-1"}, 404, "no-such-region"),
    ],
)
def test_what_is_not_as_described_is_refused_and_writes_nothing(
    path: str, body: dict[str, Any], status: int, problem: str
) -> None:
    right: dict[str, dict[str, Any]] = {
        "/reservations": {"counters": [KEY, ORG], "amount": 4, "expires_s": 60, "at": AT},
        "/reservations/settle": {"holds": [], "cost": 4},
        "/reservations/release": {"holds": []},
        "/transfers": {"source": ANN, "target": BOB, "amount": 4, "at": AT},
    }
    service = web()
    assert (
        "Nothing was written"
        in post(service, path, right[path] | body).refused(status, problem)["detail"]
    )
    assert not [key for key in service.items if key.pk.startswith(("delta#", "past#"))]


def test_two_counters_that_are_one_are_named() -> None:
    service = web()
    twice = post(
        service,
        "/reservations",
        {"counters": [ORG, KEY, KEY], "amount": 4, "expires_s": 60, "at": AT},
    )
    itself = post(service, "/transfers", {"source": ANN, "target": ANN, "amount": 4, "at": AT})
    for answer, says in (
        (twice, f"{KEY} is named twice"),
        (itself, "source and target are the same"),
    ):
        assert says in answer.refused(422, "invalid-request")["errors"][0]["error"]


def test_a_hold_never_granted_is_none_to_settle_or_release() -> None:
    service = web()
    never: dict[str, Any] = {"holds": [{"counter": KEY, "id": f"{ULID}.{A}.0.4"}]}
    for path, more in (("settle", {"cost": 4}), ("release", {})):
        said = post(service, f"/reservations/{path}", never | more).refused(404, "no-such-hold")
        assert "Repeat" not in said["detail"]  # it never helps
    assert values(service, KEY, f"over:{KEY}") == [0, 0]


def test_a_cost_with_no_counter_beside_is_refused_first() -> None:
    service = web(limits=LIMITS | {"over:": Limit(ceiling=5, region=A)})
    reserve(service, 4).refused(422, "invalid-request")
    assert held(service) == [0, 0]


def test_a_repetition_needs_its_key() -> None:
    service = web()
    reserve(service, 4, None).refused(400, "idempotency-key-missing")
    post(
        service, "/transfers", {"source": ANN, "target": BOB, "amount": 4, "at": AT}, None
    ).refused(400, "idempotency-key-missing")
