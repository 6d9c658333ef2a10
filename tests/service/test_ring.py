"""The function `ring`: which changes ring, which came late, what is skipped, and what goes into
the directory.
"""

from typing import Any

import pytest

from ledger.core import items
from ledger.core.conditions import Absent
from ledger.core.errors import Throttled, Unavailable
from ledger.core.limit import Limit
from ledger.core.requests import GetMany, Item, Key, Put, PutMany, keyed
from ledger.core.values import Delta, Lane
from ledger.gate.items import new_gate
from ledger.lane import directory
from ledger.lane.add import pack_of
from ledger.lane.named import Named
from service.job_queue import Enqueue
from service.jobs import KEYS_MAX, Look, Settle
from service.ring.records import arrived
from service.ring.ring import delay_s
from tests.service.support import NOTHING, Service, failed, stored, stream
from tests.world import LANE, NOW_MS, A, B, delta, fail, settings, token

OTHER, THIRD, THEIRS = Lane(A, 3, "other"), Lane(A, 0, "third"), Lane(B, 0, "stock:85123A")
QUIET = 8_000
"""A fold_min at which no single change of these tests rings."""

RING, LATER = (Look(LANE), 75), (Look(OTHER), 75)


def now(n: int, lane: Lane = LANE) -> Delta:
    """Delta n, of now."""
    return delta(n, lane, at_ms=NOW_MS)


def is_late(item: Item, made: Any, lateness_ms: int = 10_000) -> bool:
    record = stored(item)
    if made is not None:
        record["dynamodb"]["ApproximateCreationDateTime"] = made
    return bool(arrived([record], settings(allowed_lateness_ms=lateness_ms)).lanes[LANE].late)


def test_no_change_later_than_half_of_what_is_allowed_is_missed() -> None:
    """Whatever part of a second AWS does not say; and by its lowest token, of a pack."""
    for lateness_ms in (0, 1, 2_000, 10_001):
        for at_ms in (5_000, 5_001, 5_999):
            for after_ms in {
                0,
                lateness_ms // 2,
                lateness_ms // 2 + 1,
                *range(lateness_ms, lateness_ms + 1_000, 97),
            }:
                late = is_late(
                    items.delta_item(delta(1, at_ms=at_ms)),
                    (at_ms + after_ms) // 1_000,
                    lateness_ms,
                )
                assert late or after_ms <= lateness_ms / 2
                assert not late or after_ms > lateness_ms / 2 - 1_000
    for at_ms, late in ((100_000, False), (99_999, True)):
        assert is_late(items.delta_item(delta(1, at_ms=at_ms)), 104.0009) is late
        assert (
            is_late(items.pack_item(pack_of([delta(1, at_ms=at_ms), delta(2, at_ms=103_000)])), 104)
            is late
        )
    assert not is_late(items.delta_item(delta(1, at_ms=10**9)), 0)  # of a clock ahead
    unknown: list[Any] = [None, True, "104", -1, 10**11, float("nan"), float("inf"), {}, []]
    for made in unknown:
        assert is_late(items.delta_item(delta(1, at_ms=10**9)), made)
    images: list[Any] = [
        None,
        {},
        [],
        "x",
        {"entries": {}},
        {"entries": {"B": 5}},
        {"entries": {"B": "é"}},
    ]
    for image in images:  # what nobody can read came late, and rings
        record = stored(items.pack_item(pack_of([delta(1), delta(2)])), made_ms=0)
        record["dynamodb"]["NewImage"] = image
        record["dynamodb"]["SequenceNumber"] = image
        seen = arrived([record], settings(fold_min=QUIET)).lanes[LANE]
        assert (len(seen.late), seen.rung) == (1, True)


def test_a_late_change_is_named_at_once_and_rings_too() -> None:
    service = Service()
    pack = items.pack_item(pack_of([delta(1), delta(3)]))
    assert service.rings(delta(1), now(2), pack, delta(1, OTHER)) == NOTHING
    other = Settle(OTHER, Named((token(1),)))
    assert service.taken() == [
        (Settle(LANE, Named((token(1), pack["sk"]["S"]))), 0),
        RING,
        (other, 0),
        LATER,
    ]
    assert service.counted("LateDeltas") == 3
    assert service.lines() == [
        ("info", "late changes", {"late": 3, "lanes": [str(LANE), str(OTHER)]})
    ]
    assert service.rung(delta(1, OTHER)) == [(other, 0)]
    assert service.counted("RingsSpared") == 1
    service = Service(fold_min=QUIET)
    many = [delta(n % 20, at_ms=n) for n in range(2 * KEYS_MAX + 1)]
    service.rings(*reversed(many))
    late = [each.token for each in many]
    parts = late[:KEYS_MAX], late[KEYS_MAX:-1], late[-1:]
    assert service.taken() == [(Settle(LANE, Named(tuple(part))), 0) for part in parts]


def test_a_ring_is_skipped_for_a_minute_by_both_clocks() -> None:
    waits = [
        (0, 0, True),
        (60_000, 60_000, True),
        (60_001, 60_001, False),
        (60_001, 0, False),
        (0, 60_001, False),
    ]
    for wall_ms, steady_ms, skipped in (*waits, (-1, 1, False)):
        service = Service()
        assert service.rung(now(1)) == [RING]
        service.time_goes(wall_ms, steady_ms)
        assert service.rung(now(2)) == ([] if skipped else [RING])
        assert service.counted("RingsSpared") == skipped
    service = Service()
    for _ in range(3):  # one that was skipped does not make the minute longer
        service.rings(now(1))
        service.time_goes(30_001)
    assert service.taken() == [RING, RING]
    service = Service()
    service.before(Enqueue, lambda _: service.time_goes(50_000), times=1)
    service.rings(now(1))
    service.time_goes(10_001)
    assert service.rung(now(2)) == [RING, RING]


def test_a_ring_waits_until_what_is_skipped_for_it_is_old_enough() -> None:
    for lateness_ms, every_s, seconds in (
        (10_001, 60, 76),
        (0, 60, 65),
        (10_000, 5, 20),
        (835_001, 60, 900),
    ):
        assert delay_s(settings(allowed_lateness_ms=lateness_ms), every_s) == seconds
    for ahead_ms, seconds in ((-1, 75), (5_000, 75), (5_001, 81), (6_000, 81), (300_000, 375)):
        low, high = (delta(n, at_ms=NOW_MS + ahead_ms - 2_000 * (n == 1)) for n in (1, 2))
        for came in (high, items.pack_item(pack_of([low, high]))):
            service = Service()
            assert service.rung(came) == [(Look(LANE), seconds)]


def test_what_is_ahead_rings_for_itself() -> None:
    service = Service()
    far, further = delta(1, at_ms=NOW_MS + 100_000), delta(2, at_ms=NOW_MS + 130_000)
    assert service.rung(now(3), far) == [(Look(LANE), 175), RING]
    # the last message was the ring, which comes too early for it
    assert service.rung(far) == [(Look(LANE), 175)]
    assert service.rung(now(4), far) == []
    for wait_ms, sent in ((20_000, []), (30_001, [(Look(LANE), 185)])):
        service.time_goes(wait_ms)
        # the record is of later, so it is less far ahead
        assert service.rung(further, made_ms=NOW_MS + 20_000) == sent


def test_a_lane_is_listed_once_before_its_batch_is_answered() -> None:
    service = Service(fold_min=QUIET)
    service.store([directory.item_of(THIRD)])
    service.rings(
        now(1), now(2), now(3, OTHER), now(1, THIRD), new_gate(OTHER, Limit(ceiling=5, region=A))
    )
    assert [kind for kind in service.kinds if kind in (GetMany, PutMany, Enqueue)] == [
        GetMany,
        PutMany,
    ]
    assert service.asked[0] == GetMany(
        tuple(map(directory.key_of, (LANE, OTHER, THIRD))), consistent=False
    )
    service.rings(now(4), now(2, THIRD))
    assert (service.kinds.count(GetMany), service.counted("LanesListed")) == (1, 2)
    assert set(service.items) == set(map(directory.key_of, (LANE, OTHER, THIRD)))
    service = Service()  # a gate is listed and does not ring
    assert service.rings(new_gate(OTHER, Limit(ceiling=5, region=A))) == NOTHING
    assert (service.taken(), set(service.items)) == ([], {directory.key_of(OTHER)})


def test_a_lane_that_could_not_be_listed_comes_again() -> None:
    service, of_other = Service(), Put(directory.item_of(OTHER), Absent())
    service.before(lambda request: request == of_other, fail(Throttled("slow")), times=1)
    assert service.rings(now(1), now(1), now(1, OTHER), now(2)) == failed("3")
    assert service.taken() == [RING, LATER]
    assert service.lines()[-1][0] == "error"
    service.before(GetMany, fail(Unavailable("away")), times=1)
    assert service.rings(now(1, OTHER), now(2)) == failed("1")
    assert service.rings(now(1)) == NOTHING  # it is known
    assert service.rings(now(1, OTHER)) == NOTHING
    assert directory.key_of(OTHER) in service.items


def record(pk: str, sk: str, event: str = "INSERT") -> dict[str, Any]:
    return stored(keyed(Key(pk, sk)), event)


DELTAS = items.delta_pk(LANE)
GARBAGE: list[Any] = [
    *(None, 1, "x", [], {}, {"eventName": "INSERT"}, {"eventName": "INSERT", "dynamodb": {}}),
    *(record(DELTAS, token(1), event) for event in ("MODIFY", "REMOVE", "insert")),
    *stream(
        delta(1, THEIRS), new_gate(THEIRS, Limit(ceiling=5, region=A)), directory.item_of(LANE)
    )["Records"],
    *(record(items.fold_pk(LANE), "checkpoint"), record(f"fold#{LANE}", token(1))),
    *(record(DELTAS, sk) for sk in ("", "x", token(1).lower(), f"{token(1)}#{'0' * 38}")),
    *(
        record(pk, token(1))
        for pk in ("", "delta", "delta#", "delta#eu-west-1#01#a", "delta#eu-west-1#0#a b")
    ),
    *(record(f"mark#{A}#0", "x"), record(f"gate#{LANE}", "x")),
    {"eventName": "INSERT", "dynamodb": {"Keys": {"pk": {"N": "1"}, "sk": {"S": token(1)}}}},
]


def test_records_of_other_regions_and_garbage_are_ignored() -> None:
    service = Service()
    assert (
        service.ringer({"Records": [*GARBAGE, *stream(now(1), made_ms=NOW_MS)["Records"]]})
        == NOTHING
    )
    assert service.taken() == [RING]
    assert service.counted("LanesRung") == 1
    assert set(service.items) == {directory.key_of(LANE)}
    events: list[dict[str, Any]] = [{}, {"Records": []}, {"Records": GARBAGE}]
    service.asked.clear()
    for event in events:
        assert service.ringer(event) == NOTHING
    assert service.kinds == []


def test_the_first_record_of_the_first_lane_that_failed_is_named() -> None:
    service = Service()
    service.refused |= {OTHER, THIRD}
    came = (now(1), now(1, OTHER), now(2), now(1, THIRD), now(2, OTHER))
    assert service.rings(*came) == failed("2")
    assert service.taken() == [RING]
    level, _, fields = service.lines()[-1]
    assert (level, fields["lanes"], fields["from"], "queue" in fields["reason"]) == (
        "error",
        2,
        "2",
        True,
    )
    service.refused.remove(OTHER)
    assert service.rings(*came) == failed("4")
    service.queue_down = True
    assert service.rings(now(2), delta(3)) == failed("1")  # a late name, though its ring is skipped
    event = stream(now(1, Lane(A, 0, "new")), made_ms=NOW_MS)
    del event["Records"][0]["dynamodb"]["SequenceNumber"]
    with pytest.raises(Unavailable):
        service.ringer(event)
