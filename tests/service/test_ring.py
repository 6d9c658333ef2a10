"""The function `ring`: which changes ring, which came late, what is skipped, and what goes into the directory."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from cachetools import LRUCache
from hypothesis import given
from hypothesis import strategies as st

from compactor.named import Named
from ledger import items, tokens
from ledger.errors import Throttled, Unavailable
from ledger.gate.items import gate_key, new_gate
from ledger.lane import directory
from ledger.lane.add import pack_of
from ledger.limit import Limit
from ledger.requests import GetMany, Item, Key, PutMany, keyed
from ledger.values import Delta, Lane
from service import observe
from service.fields import KEY_MAX
from service.job_queue import Enqueue
from service.jobs import KEYS_MAX, Look, Settle
from service.messages import jobs_of, message_of
from service.ring.draw import rings
from service.ring.handler import Ringer
from service.ring.records import arrived
from service.ring.ring import KNOWN_MAX, SENT_MAX, Memory, Rung, delay_s, ring
from tests.service.support import NOTHING, Service, failed, stored
from tests.world import LANE, NOW_MS, A, B, Region, delta, settings, token

OTHER, THEIRS = Lane(A, 3, "other"), Lane(B, 0, "stock:85123A")
QUIET = 8_000
"""A fold_min at which no single change of these tests rings."""

RING, LATER = (Look(LANE), 75), (Look(OTHER), 75)


class Bell(Service):
    """A ringer that rings for every change, unless it has another `fold_min`."""

    def __init__(self, table: Region | None = None, **changed: Any) -> None:
        super().__init__(table)
        self.settings = settings(**changed)
        self.asked: list[Any] = []
        self.before = self.asked.append
        self.ringer = Ringer(self.settings, self.runtime, self.watch)

    def came(self, *came: Delta | Item, made_ms: int | None = NOW_MS) -> Any:
        """The answer to a batch with these new items, numbered from 1; each record is of now, unless it says else."""
        every = (items.delta_item(each) if isinstance(each, Delta) else each for each in came)
        return self.ringer({"Records": [stored(each, sequence=n, made_ms=made_ms) for n, each in enumerate(every, 1)]})

    def time_goes(self, wall_ms: int, steady_ms: int | None = None) -> None:
        self.table.now_ms += wall_ms
        self.table.steady_ms += wall_ms if steady_ms is None else steady_ms


def now(n: int, lane: Lane = LANE) -> Delta:
    """Delta n, of now."""
    return delta(n, lane, at_ms=NOW_MS)


# -- the draw ----------------------------------------------------------------------------------------------------------


def drawn(number: int) -> list[str]:
    by = random.Random(16)
    return [tokens.make(NOW_MS + n, by.randbytes(tokens.RANDOM_BYTES)) for n in range(number)]


def test_an_item_with_n_changes_rings_n_in_fold_min_times_whatever_its_shard() -> None:
    number = 4_000
    for changes, fold_min in ((1, 1), (1, 2), (1, 32), (1, 100), (2, 32), (16, 32), (32, 32)):
        share = changes / fold_min
        rung = sum(rings(Key(items.delta_pk(LANE), sk), changes, fold_min) for sk in drawn(number))
        assert abs(rung - number * share) <= 4 * (number * share * (1 - share)) ** 0.5
    for shards in (2, 8, 10, 32):
        by_shard = [0] * shards
        for sk in drawn(shards * 1_000):
            shard = tokens.draw(sk, shards)
            by_shard[shard] += rings(Key(items.delta_pk(Lane(A, shard, "stock")), sk), 1, 32)
        assert all(abs(times - 1_000 / 32) < 5 * (1_000 / 32) ** 0.5 for times in by_shard), by_shard
    counting = (tokens.make(NOW_MS, n.to_bytes(tokens.RANDOM_BYTES, "big")) for n in range(8_000))
    assert 190 < sum(rings(Key(items.delta_pk(LANE), sk), 1, 32) for sk in counting) < 310


def test_the_same_record_rings_whenever_it_is_read_and_a_pack_by_the_changes_that_it_holds() -> None:
    records = {sk: stored(items.delta_item(Delta(LANE, sk, 1)), made_ms=NOW_MS) for sk in drawn(200)}
    rung = {sk for sk, record in records.items() if arrived([record], settings(fold_min=8)).lanes[LANE].rung}
    assert rung == {sk for sk in records if rings(Key(items.delta_pk(LANE), sk), 1, 8)}
    packs = [items.pack_item(pack_of([delta(n), delta(n + 1)])) for n in range(25)]
    for fold_min, many in ((QUIET, 0), (2, 25)):
        own = settings(fold_min=fold_min)
        assert sum(arrived([stored(pack)], own).lanes[LANE].rung for pack in packs) == many


# -- what came late ----------------------------------------------------------------------------------------------------


def is_late(item: Item, made: Any, lateness_ms: int = 10_000) -> bool:
    record = stored(item)
    if made is not None:
        record["dynamodb"]["ApproximateCreationDateTime"] = made
    return bool(arrived([record], settings(allowed_lateness_ms=lateness_ms)).lanes[LANE].late)


def test_no_change_that_came_later_than_half_of_what_is_allowed_is_missed() -> None:
    """Whatever part of a second AWS does not say; and by its lowest token, of a pack."""
    for lateness_ms in (0, 1, 2_000, 10_000, 10_001):
        half_ms = lateness_ms / 2
        for at_ms in (5_000, 5_001, 5_250, 5_999):
            for after_ms in {
                0,
                1,
                lateness_ms // 2,
                lateness_ms // 2 + 1,
                *range(lateness_ms, lateness_ms + 1_000, 97),
            }:
                late = is_late(items.delta_item(delta(1, at_ms=at_ms)), (at_ms + after_ms) // 1_000, lateness_ms)
                assert late or after_ms <= half_ms
                assert not late or after_ms > half_ms - 1_000
    for at_ms, late in ((100_000, False), (99_999, True)):
        assert is_late(items.delta_item(delta(1, at_ms=at_ms)), 104.0009) is late
        pack = items.pack_item(pack_of([delta(1, at_ms=at_ms), delta(2, at_ms=103_000)]))
        assert is_late(pack, 104) is late
    assert not is_late(items.delta_item(delta(1, at_ms=10**9)), 0)  # of a clock ahead
    unknown: list[Any] = [None, True, "104", -1, 10**11, float("nan"), float("inf"), {}, []]
    for made in unknown:
        assert is_late(items.delta_item(delta(1, at_ms=10**9)), made)


def test_what_nobody_can_read_came_late_and_rings() -> None:
    images: list[Any] = [None, {}, [], "x", {"entries": {}}, {"entries": {"B": 5}}, {"entries": {"B": "é"}}]
    for image in images:
        record = stored(items.pack_item(pack_of([delta(1), delta(2)])), made_ms=0)
        record["dynamodb"]["NewImage"] = image
        seen = arrived([record], settings(fold_min=QUIET)).lanes[LANE]
        assert (len(seen.late), seen.rung) == (1, True)


def test_what_came_late_is_named_at_once_by_jobs_of_a_hundred_is_never_skipped_and_rings_too() -> None:
    bell = Bell()
    pack = items.pack_item(pack_of([delta(1), delta(3)]))
    assert bell.came(delta(1), now(2), pack, delta(1, OTHER)) == NOTHING
    first = Settle(LANE, Named((token(1), pack["sk"]["S"])))
    other = Settle(OTHER, Named((token(1),)))
    assert bell.taken() == [(first, 0), RING, (other, 0), LATER]
    assert bell.metrics[observe.LATE_DELTAS] == 3
    assert bell.notes.lines == [("info", "late changes", {"late": 3, "lanes": [str(LANE), str(OTHER)]})]
    assert (bell.came(delta(1, OTHER)), bell.taken()) == (NOTHING, [(other, 0)])
    assert bell.metrics[observe.RINGS_SPARED] == 1
    bell = Bell(fold_min=QUIET)
    late = [delta(n % 20, at_ms=n).token for n in range(2 * KEYS_MAX + 1)]
    bell.came(*(delta(n % 20, at_ms=n) for n in reversed(range(2 * KEYS_MAX + 1))))
    parts = late[:KEYS_MAX], late[KEYS_MAX:-1], late[-1:]
    assert bell.taken() == [(Settle(LANE, Named(tuple(part))), 0) for part in parts]


# -- what is skipped ---------------------------------------------------------------------------------------------------


def test_a_ring_is_skipped_for_a_minute_by_both_clocks_and_no_longer() -> None:
    waits = [(0, 0, True), (60_000, 60_000, True), (60_001, 60_001, False), (60_001, 0, False), (0, 60_001, False)]
    for wall_ms, steady_ms, skipped in (*waits, (-1, 1, False)):
        bell = Bell()
        bell.came(now(1))
        assert bell.taken() == [RING]
        bell.time_goes(wall_ms, steady_ms)
        bell.came(now(2))
        assert bell.taken() == ([] if skipped else [RING])
        assert bell.metrics[observe.RINGS_SPARED] == skipped
    bell = Bell()
    for _ in range(3):  # one that was skipped does not make the minute longer
        bell.came(now(1))
        bell.time_goes(30_001)
    assert bell.taken() == [RING, RING]


def test_the_minute_begins_before_the_message_is_sent() -> None:
    bell = Bell()
    bell.before = lambda request: bell.time_goes(50_000) if isinstance(request, Enqueue) else None
    bell.came(now(1))
    bell.before = lambda request: None
    bell.time_goes(10_001)
    bell.came(now(2))
    assert bell.taken() == [RING, RING]


def test_nothing_is_skipped_for_a_message_that_was_not_confirmed_or_of_another_process_lane_or_job() -> None:
    bell = Bell()
    bell.queue.refused.add(LANE)
    assert bell.came(now(1, OTHER), now(1)) == failed("2")
    bell.queue.refused.clear()
    assert (bell.came(now(1)), bell.taken()) == (NOTHING, [LATER, RING])
    bell.ringer = Ringer(bell.settings, bell.runtime, bell.watch)
    assert (bell.came(now(1)), bell.came(now(1, OTHER)), bell.taken()) == (NOTHING, NOTHING, [RING, LATER])
    bell, memory = Bell(), Memory()
    for made_ms, fold_min in ((NOW_MS, QUIET), (1_000, 1)):  # named as late, then rung
        came = arrived([stored(items.delta_item(delta(1)), made_ms=made_ms)], settings(fold_min=fold_min))
        bell.runtime.run(ring(came, Rung(), memory, bell.settings))
    assert [type(job) for job, _ in bell.taken()] == [Settle, Look]


def test_a_process_remembers_so_many_lanes_and_no_more() -> None:
    bell, lanes = Bell(), [Lane(A, 0, str(n)) for n in range(3)]
    memory = Memory(listed=LRUCache(2), sent=LRUCache(2))
    for lane in (*lanes, lanes[0]):
        came = arrived([stored(items.delta_item(now(1, lane)), made_ms=NOW_MS)], bell.settings)
        bell.runtime.run(ring(came, Rung(), memory, bell.settings))
    assert [job.lane for job, _ in bell.taken()] == [*lanes, lanes[0]]
    assert [len(request.keys) for request in bell.asked if isinstance(request, GetMany)] == [1] * 4
    assert (Memory().listed.maxsize, Memory().sent.maxsize) == (KNOWN_MAX, SENT_MAX)  # type: ignore[attr-defined]


def test_a_ring_waits_until_what_is_skipped_for_it_is_old_enough() -> None:
    for lateness_ms, every_s, seconds in (
        *((10_000, 60, 75), (10_001, 60, 76), (0, 60, 65), (10_000, 5, 20)),
        *((835_000, 60, 900), (3_600_000, 60, 900)),
    ):
        assert delay_s(settings(allowed_lateness_ms=lateness_ms), every_s) == seconds
    for ahead_ms, seconds in ((-1, 75), (5_000, 75), (5_001, 81), (6_000, 81), (300_000, 375)):
        for first in (delta(1, at_ms=NOW_MS + ahead_ms), None):
            bell = Bell()
            low, high = (delta(n, at_ms=NOW_MS + ahead_ms - 2_000 * (n == 1)) for n in (1, 2))
            bell.came(first or items.pack_item(pack_of([low, high])))
            assert bell.taken() == [(Look(LANE), seconds)]


def test_what_is_ahead_and_what_is_not_ring_each_for_itself_and_are_skipped_for_what_waits_as_long() -> None:
    bell = Bell()
    far, further = delta(1, at_ms=NOW_MS + 100_000), delta(2, at_ms=NOW_MS + 130_000)
    bell.came(now(3), far)
    assert bell.taken() == [(Look(LANE), 175), RING]
    bell.came(far)  # the last message was the ring, which comes too early for it
    assert bell.taken() == [(Look(LANE), 175)]
    bell.came(now(4), far)
    assert bell.taken() == []
    bell.time_goes(20_000)  # the record is of now, so it is less far ahead
    bell.came(further, made_ms=NOW_MS + 20_000)
    assert bell.taken() == []
    bell.time_goes(30_001)
    bell.came(further, made_ms=NOW_MS + 20_000)
    assert bell.taken() == [(Look(LANE), 185)]


# -- the directory -----------------------------------------------------------------------------------------------------


def test_a_lane_is_put_into_the_directory_once_before_its_batch_is_answered() -> None:
    bell = Bell(fold_min=QUIET)
    third = Lane(A, 0, "third")
    bell.table.store([directory.item_of(third)])
    bell.came(now(1), now(2), now(3, OTHER), now(1, third))
    assert bell.asked == [
        GetMany(tuple(map(directory.key_of, (LANE, OTHER, third))), consistent=False),
        PutMany((directory.item_of(LANE), directory.item_of(OTHER))),
    ]
    bell.asked.clear()
    bell.came(now(4), now(2, third))
    assert (bell.asked, bell.metrics[observe.LANES_LISTED]) == ([], 2)
    assert set(bell.table.items) == set(map(directory.key_of, (LANE, OTHER, third)))


def test_a_gate_is_listed_and_does_not_ring() -> None:
    bell = Bell()
    assert bell.came(new_gate(OTHER, Limit(ceiling=5, region=A))) == NOTHING
    assert (bell.taken(), set(bell.table.items)) == ([], {directory.key_of(OTHER)})
    assert gate_key(OTHER) not in bell.table.items


class Failing(Region):
    """Does not put one lane into the directory, or does not read there."""

    put_fails, get_fails = True, False

    def answer(self, request: Any, /) -> Any:
        if isinstance(request, GetMany) and self.get_fails:
            raise Unavailable("away")
        if isinstance(request, PutMany) and self.put_fails:
            put: Callable[[Item], Any] = lambda item: super(Failing, self).answer(PutMany((item,)))[0]  # noqa: E731
            other = directory.item_of(OTHER)
            return tuple(Throttled("slow") if item == other else put(item) for item in request.items)
        return super().answer(request)


def test_a_lane_that_could_not_be_listed_comes_again_and_its_message_is_sent_all_the_same() -> None:
    table = Failing()
    bell = Bell(table)
    assert bell.came(now(1), now(1), now(1, OTHER), now(2)) == failed("3")
    assert bell.taken() == [RING, LATER]
    assert bell.notes.lines[-1][0] == "error"
    table.put_fails, table.get_fails = False, True
    assert bell.came(now(1, OTHER), now(2)) == failed("1")
    assert bell.came(now(1)) == NOTHING  # it is known
    table.get_fails = False
    assert bell.came(now(1, OTHER)) == NOTHING
    assert directory.key_of(OTHER) in table.items


# -- what is none of ours, and failures --------------------------------------------------------------------------------


def record(pk: str, sk: str, event: str = "INSERT") -> dict[str, Any]:
    return stored(keyed(Key(pk, sk)), event)


DELTAS = items.delta_pk(LANE)
GARBAGE: list[Any] = [
    *(None, 1, "x", [], {}, {"eventName": "INSERT"}, {"eventName": "INSERT", "dynamodb": {}}),
    *(record(DELTAS, token(1), event) for event in ("MODIFY", "REMOVE", "insert")),
    stored(items.delta_item(delta(1, THEIRS))),
    stored(new_gate(THEIRS, Limit(ceiling=5, region=A))),
    stored(directory.item_of(LANE)),
    record(items.fold_pk(LANE), "checkpoint"),
    record(f"fold#{LANE}", token(1)),
    *(record(DELTAS, sk) for sk in ("", "x", token(1).lower(), f"{token(1)}#{'0' * 38}")),
    *(record(pk, token(1)) for pk in ("", "delta", "delta#", "delta#eu-west-1#01#a", "delta#eu-west-1#0#a b")),
    *(record(f"mark#{A}#0", "x"), record(f"gate#{LANE}", "x")),
    {"eventName": "INSERT", "dynamodb": {"Keys": {"pk": {"N": "1"}, "sk": {"S": token(1)}}}},
]


def test_records_of_other_regions_and_garbage_are_ignored_and_counted() -> None:
    bell = Bell()
    assert bell.ringer({"Records": [*GARBAGE, stored(items.delta_item(now(1)), made_ms=NOW_MS)]}) == NOTHING
    assert bell.taken() == [RING]
    assert (bell.metrics[observe.RECORDS_IGNORED], bell.metrics[observe.LANES_RUNG]) == (len(GARBAGE), 1)
    assert set(bell.table.items) == {directory.key_of(LANE)}
    bell.asked.clear()
    events: list[dict[str, Any]] = [{}, {"Records": []}, {"Records": GARBAGE}]
    for event in events:
        assert bell.ringer(event) == NOTHING
    assert bell.asked == []


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
sort_keys = st.just(token(1)) | st.text() | st.integers(0, KEY_MAX).map(lambda n: f"{token(1)}#{'x' * n}")


@given(sort_keys, anything, anything, anything)
def test_whatever_a_record_holds_it_is_ignored_or_becomes_messages_that_can_be_read(
    sk: str, image: Any, made: Any, sequence: Any
) -> None:
    bell = Bell()
    given = stored(keyed(Key(DELTAS, sk)))
    given["dynamodb"] |= {"NewImage": image, "ApproximateCreationDateTime": made, "SequenceNumber": sequence}
    assert bell.ringer({"Records": [given]}) == NOTHING
    for job, _ in bell.taken():
        assert jobs_of(message_of(job), bell.settings) == [job]


def test_the_first_record_of_the_first_lane_that_failed_is_named() -> None:
    bell = Bell()
    third = Lane(A, 0, "third")
    bell.queue.refused |= {OTHER, third}
    came = (now(1), now(1, OTHER), now(2), now(1, third), now(2, OTHER))
    assert bell.came(*came) == failed("2")
    assert bell.taken() == [RING]
    level, _, fields = bell.notes.lines[-1]
    assert (level, fields["lanes"], fields["from"]) == ("error", 2, "2")
    bell.queue.refused.remove(OTHER)
    assert bell.came(*came) == failed("4")
    bell.queue.down = True
    assert bell.came(now(2), delta(3)) == failed("1")  # a late name, though its ring is skipped
    bell.time_goes(60_001)
    assert bell.came(*came) == failed("1")
    given = stored(items.delta_item(now(1)), made_ms=NOW_MS)
    del given["dynamodb"]["SequenceNumber"]
    with pytest.raises(Unavailable):
        bell.ringer({"Records": [given]})
