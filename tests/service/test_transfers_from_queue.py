"""Transfers that come through the queue of changes: in rounds, once, and answered when all of
one is decided.
"""

from typing import Any

import pytest

from ledger import Change, Ledger, Limit, Then
from ledger.client.message import dumps, time_of
from ledger.core.running import run
from ledger.lane import shape
from tests.service.support import Service
from tests.world import A, B, settings, writes_of

ANN, BOB, FULL, TILL = "wallet:ann", "wallet:bob", "wallet:full", "till"
AT_MS, AT = 1_291_200_000_000, "2010-12-01T08:26:00.000Z"


def started(region: str = A, **given: Any) -> Service:
    """Of 100 Ann has 60, Bob 30, and one 95."""
    limits = {"wallet:": Limit(floor=0, ceiling=100, region=A), "purse:": Limit(floor=0)}
    service = Service(region, now_ms=AT_MS, limits=limits).start(**given)
    assert service.adds(plain(ANN, 60), plain(BOB, 30), plain(FULL, 95)) == []
    service.sqs.taken.clear()
    return service


def ledger_of(service: Service) -> Ledger:
    """That of another process."""
    return Ledger(service.settings, tables=service.tables, clock=service.clock)


def plain(counter: str, change: int, key: str = "start") -> str:
    return dumps(Change(counter, change, key, time_of(AT)))


def moves(
    amount: int, key: str = "pay", source: str = ANN, target: str = BOB, region: str | None = None
) -> str:
    return dumps(Change(source, -amount, key, time_of(AT), region, Then(target, amount)))


def outcomes(service: Service) -> list[tuple[str, str, str]]:
    return [
        (message["idempotency_key"], message["counter"], message["outcome"])
        for message in service.outcomes()
    ]


def values(service: Service) -> list[int]:
    return [service.value(name) for name in (ANN, BOB, TILL)]


def test_a_batch_is_decided_in_rounds_and_moves_once() -> None:
    for pack in (False, True):
        service = started(pack=pack, queues=("outcomes",))
        bodies = (
            moves(20, "a"),
            moves(41, "b"),
            moves(7, "c", TILL),
            moves(95, "d", TILL, ANN),
            plain(TILL, 1, "e"),
        )
        for _ in range(2):
            assert service.adds(*bodies) == []
            assert values(service) == [40, 57, -6]
            assert outcomes(service) == [
                ("a", ANN, "counted"),
                ("b", ANN, "refused"),
                ("c", TILL, "counted"),
                ("d", TILL, "refused"),
            ]
            service.sqs.taken.clear()


def test_a_refused_refund_is_an_error_and_comes_again() -> None:
    service = started()
    other = ledger_of(service)
    service.before(writes_of(FULL), lambda _: other.add(ANN, 50), 1)
    for _ in range(2):
        assert service.adds(moves(10, target=FULL)) == [0]
        assert (service.value(ANN), outcomes(service)) == (100, [])
        assert service.lines("error")[-1][1].startswith("transfer stuck")
    other.add(ANN, -50)
    for _ in range(2):
        assert service.adds(moves(10, target=FULL)) == []
        assert service.value(ANN) == 60
    assert outcomes(service) == [("pay", ANN, "refused")] * 2


def test_a_batch_of_stuck_transfers_costs_the_same_each_time() -> None:
    service = started(pack=True)
    other = ledger_of(service)
    bodies = [moves(10, f"pay{n}", target=FULL) for n in range(5)]
    service.before(writes_of(FULL), lambda _: other.add(ANN, 90), 1)
    requests = []
    for _ in range(12):
        service.time_goes(900_000)
        service.asked.clear()
        assert service.adds(*bodies) == [0, 1, 2, 3, 4]
        requests.append(len(service.asked))
        assert service.value(ANN) == 100
    assert max(requests[1:]) == requests[1] < 60
    other.add(ANN, -50)
    assert service.adds(*bodies) == []
    assert service.value(ANN) == 100


@pytest.mark.parametrize("first", ["queue", "caller"])
def test_a_refund_by_the_queue_and_by_a_caller_is_one_refund(first: str) -> None:
    """Whoever began it and whoever finds it refunded; also of a source that has no ceiling, or
    no limit at all.
    """
    named: dict[str, Any] = {"idempotency_key": "pay", "at": time_of(AT)}
    for source, before in ((ANN, 60), (TILL, 0), ("purse:a", 60)):
        service = started()
        if before and source != ANN:
            assert service.adds(plain(source, before)) == []

        def by_queue(service: Service = service, source: str = source) -> None:
            assert service.adds(moves(10, source=source, target=FULL)) == []

        def by_caller(service: Service = service, source: str = source) -> None:
            assert ledger_of(service).transfer(source, FULL, 10, **named).outcome == "refunded"

        turns = (by_queue, by_caller) if first == "queue" else (by_caller, by_queue)
        for turn in turns * 2:
            turn()
            assert (service.value(source), service.value(FULL)) == (before, 95)


def test_another_source_or_target_makes_another_transfer() -> None:
    for pack in (False, True):
        service = started(pack=pack)
        bodies = (
            moves(10, target=FULL),
            moves(10),
            moves(10, target=TILL),
            moves(10, source=TILL, target=BOB),
        )
        for _ in range(2):
            assert service.adds(*bodies) == []
            assert (*values(service), service.value(FULL)) == (40, 50, 0, 95)
        for body in bodies:
            assert service.adds(body) == []
        assert (*values(service), service.value(FULL)) == (40, 50, 0, 95)
        assert service.dead_letters() == []
        assert service.adds(moves(11)) == []
        assert [why for _, why in service.dead_letters()] == ["TokenConflict"]


def test_a_transfer_first_asked_for_abroad_moves_in_its_lanes() -> None:
    service = started(B)
    assert service.adds(moves(10, "till", TILL, "shop", region=A)) == []
    lanes = {
        key.pk
        for table in service.tables.values()
        for key in table.items
        if key.pk.startswith("delta#")
    }
    assert lanes == {f"delta#{A}#0#{TILL}", f"delta#{A}#0#shop"}


@pytest.mark.parametrize("is_strong", [False, True])
def test_a_transfer_whose_target_the_shape_refuses_takes_nothing(is_strong: bool) -> None:
    """The target's limit is not in the shape yet, or the table takes only counters with a limit."""
    wallets = {"wallet:": Limit(floor=0, ceiling=100, region=A)}
    limits = wallets if is_strong else {**wallets, "new:": Limit(floor=0)}
    for pack in (False, True):
        service = Service(now_ms=AT_MS, limits=limits)
        run(shape.write(settings(A, limits=wallets), is_strong), service, service.now)
        service.start(pack=pack)
        assert service.adds(plain(ANN, 60)) == []
        bodies = (moves(10, "a", target="new:b"), moves(10, "b"), plain(ANN, 1, "c"))
        for _ in range(2):
            assert service.adds(*bodies) == [0]
            assert (service.value(ANN), service.value(BOB)) == (51, 10)
            assert [line["error"] for _, _, line in service.lines("error")] == ["SettingsMismatch"]
            service.forget()
    if not is_strong:  # once the shape has it
        run(shape.write(service.settings, is_strong), service, service.now)
        assert service.start().adds(*bodies) == []
        assert (service.value(ANN), service.value("new:b")) == (41, 10)


def test_a_transfer_to_a_name_not_written_here_is_a_dead_letter() -> None:
    service = started(prefixes=("wallet:", "till"))
    assert service.adds(moves(10, target="ledger:canary"), moves(10, "other", target="shop")) == []
    assert [copy["MessageBody"] for copy in service.sqs.taken["dead_letters"]] == [
        moves(10, target="ledger:canary"),
        moves(10, "other", target="shop"),
    ]
    assert values(service) == [60, 30, 0]
