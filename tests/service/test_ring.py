"""The function `ring`: which changes ring, which came late, what is spared, and what goes into the directory."""

import random
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
from service.ring.draw import rings
from service.ring.handler import Ringer
from service.ring.records import arrived
from service.ring.ring import KNOWN_MAX, RUNG_MAX, Memory, Rung, delay_s, ring
from service.work import KEY_MAX, NAMES_MAX, Send, Work
from tests.service.support import Service, stored
from tests.support import LANE, NOW_MS, A, B, Region, delta, settings, token

OTHER, THEIRS = Lane(A, 3, "other"), Lane(B, 0, "stock:85123A")
NOTHING: dict[str, list[Any]] = {"batchItemFailures": []}


def from_record(n: int) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": str(n)}]}


class Bell(Service):
    """A ringer that rings for every change, unless it is told another `fold_min`."""

    def __init__(self, table: Region | None = None, **changed: Any) -> None:
        super().__init__(table or Region())
        self.settings = settings(**changed)
        self.asked: list[Any] = []
        self.before = self.asked.append
        self.ringer = self.another()

    def another(self) -> Ringer:
        """Of another process."""
        return Ringer(self.settings, self.runtime, self.told, self.told)  # type: ignore[arg-type]

    def came(self, *came: Delta | Item, made_ms: int | None = NOW_MS) -> Any:
        """The answer to a batch with these new items, numbered from 1; each change is of now, unless it says else."""
        every = (items.delta_item(each) if isinstance(each, Delta) else each for each in came)
        return self.ringer({"Records": [stored(each, sequence=n, made_ms=made_ms) for n, each in enumerate(every, 1)]})

    def taken(self) -> list[tuple[Work, int]]:
        sent, self.queue.sent = self.queue.sent, []
        return sent

    def time_goes(self, wall_ms: int, steady_ms: int | None = None) -> None:
        self.table.now_ms += wall_ms
        self.table.steady_ms += wall_ms if steady_ms is None else steady_ms


def now(n: int, lane: Lane = LANE) -> Delta:
    """Delta n, put when it was asked for."""
    return delta(n, lane, at_ms=NOW_MS)


QUIET = 8_000
"""A fold_min at which no single change of these tests rings."""

RING, LATER = (Work(LANE), 75), (Work(OTHER), 75)


# -- the draw ----------------------------------------------------------------------------------------------------------


def drawn(number: int) -> list[str]:
    by = random.Random(16)
    return [tokens.make(NOW_MS + n, by.randbytes(tokens.RANDOM_BYTES)) for n in range(number)]


@pytest.mark.parametrize("fold_min", [1, 2, 8, 32, 100])
def test_a_change_rings_once_in_fold_min_times(fold_min: int) -> None:
    number = 4_000
    rung = sum(rings(Key(items.delta_pk(LANE), each), 1, fold_min) for each in drawn(number))
    expected = number / fold_min
    assert abs(rung - expected) <= 4 * (expected * (1 - 1 / fold_min)) ** 0.5


@pytest.mark.parametrize("shards", [2, 4, 8, 32, 10, 64])
def test_the_draw_has_nothing_to_do_with_the_shard(shards: int) -> None:
    rung, number = [0] * shards, shards * 1_000
    for each in drawn(number):
        shard = tokens.draw(each, shards)
        rung[shard] += rings(Key(items.delta_pk(Lane(A, shard, "stock")), each), 1, 32)
    expected = 1_000 / 32
    assert all(abs(times - expected) < 5 * expected**0.5 for times in rung), rung  # five standard deviations


def test_changes_whose_tokens_count_up_ring_as_often_as_any() -> None:
    counted = (tokens.make(NOW_MS, n.to_bytes(tokens.RANDOM_BYTES, "big")) for n in range(32_000))
    assert 850 < sum(rings(Key(items.delta_pk(LANE), each), 1, 32) for each in counted) < 1_150


@pytest.mark.parametrize(("changes", "least", "most"), [(2, 550, 700), (16, 4_800, 5_200), (32, 10_000, 10_000)])
def test_a_pack_of_n_rings_n_times_as_often_and_one_of_fold_min_always(changes: int, least: int, most: int) -> None:
    keys = (Key(items.delta_pk(LANE), f"{each}#{'0' * 32}") for each in drawn(10_000))
    assert least <= sum(rings(key, changes, 32) for key in keys) <= most


def test_the_same_record_rings_whenever_and_by_whomever_it_is_read() -> None:
    records = {each: stored(items.delta_item(Delta(LANE, each, 1)), made_ms=NOW_MS) for each in drawn(200)}
    rung = {each for each, record in records.items() if arrived([record], settings(fold_min=8)).lanes[LANE].rung}
    assert rung == {each for each in records if rings(Key(items.delta_pk(LANE), each), 1, 8)}
    assert 10 < len(rung) < 45


def test_a_pack_rings_by_the_changes_that_it_holds() -> None:
    packs = [items.pack_item(pack_of([delta(n), delta(n + 1)])) for n in range(25)]
    few, many = (
        sum(arrived([stored(pack)], settings(fold_min=fold_min)).lanes[LANE].rung for pack in packs)
        for fold_min in (QUIET, 2)
    )
    assert (few, many) == (0, 25)


# -- what came late ----------------------------------------------------------------------------------------------------


def is_late(item: Item, made: Any, lateness_ms: int = 10_000) -> bool:
    record = stored(item)
    if made is not None:
        record["dynamodb"]["ApproximateCreationDateTime"] = made
    return bool(arrived([record], settings(allowed_lateness_ms=lateness_ms)).lanes[LANE].late)


@pytest.mark.parametrize("lateness_ms", [0, 1, 2_000, 10_000, 10_001])
def test_no_change_that_came_later_than_half_of_what_is_allowed_is_missed(lateness_ms: int) -> None:
    """Whatever part of a second AWS does not tell."""
    half_ms = lateness_ms / 2
    for at_ms in (5_000, 5_001, 5_250, 5_999):
        for after_ms in {0, 1, lateness_ms // 2, lateness_ms // 2 + 1, *range(lateness_ms, lateness_ms + 1_000, 37)}:
            late = is_late(items.delta_item(delta(1, at_ms=at_ms)), (at_ms + after_ms) // 1_000, lateness_ms)
            assert late or after_ms <= half_ms
            assert not late or after_ms > half_ms - 1_000


@pytest.mark.parametrize("after_ms", [10_001, 10_500, 10_998, 10_999])
def test_a_change_that_came_a_little_later_than_allowed_is_late_though_the_time_is_rounded_down(after_ms: int) -> None:
    for at_ms in range(100_000, 101_000):
        assert is_late(items.delta_item(delta(1, at_ms=at_ms)), (at_ms + after_ms) // 1_000)


def test_the_bound_is_exact() -> None:
    for made in (104, 104.0, 104.0009):
        assert not is_late(items.delta_item(delta(1, at_ms=100_000)), made)
        assert is_late(items.delta_item(delta(1, at_ms=99_999)), made)


@pytest.mark.parametrize("made", [None, True, "104", -1, 10**11, float("nan"), float("inf"), {}, []], ids=repr)
def test_a_change_of_which_nobody_tells_when_it_was_put_is_late(made: Any) -> None:
    assert is_late(items.delta_item(delta(1, at_ms=10**9)), made)


def test_a_change_from_a_clock_ahead_is_not_late() -> None:
    assert not is_late(items.delta_item(delta(1, at_ms=10**9)), 0)


def test_a_pack_is_as_late_as_its_lowest_token() -> None:
    late, early = (pack_of([delta(1, at_ms=at_ms), delta(2, at_ms=103_000)]) for at_ms in (99_999, 100_000))
    assert is_late(items.pack_item(late), 104)
    assert not is_late(items.pack_item(early), 104)


@pytest.mark.parametrize("image", [None, {}, [], "x", {"entries": {}}, {"entries": {"B": 5}}, {"entries": {"B": "é"}}])
def test_what_nobody_can_read_came_late_and_rings(image: Any) -> None:
    record = stored(items.pack_item(pack_of([delta(1), delta(2)])), made_ms=0)
    record["dynamodb"]["NewImage"] = image
    seen = arrived([record], settings(fold_min=QUIET)).lanes[LANE]
    assert (len(seen.late), seen.rung) == (1, True)


def test_what_came_late_is_named_at_once_and_rings_too() -> None:
    bell = Bell()
    pack = items.pack_item(pack_of([delta(1), delta(3)]))
    assert bell.came(delta(1), now(2), pack, delta(1, OTHER), made_ms=NOW_MS) == NOTHING
    late = Named((token(1), pack["sk"]["S"]))
    assert bell.taken() == [
        (Work(LANE, late=late, fold=False), 0),
        RING,
        (Work(OTHER, late=Named((token(1),)), fold=False), 0),
        LATER,
    ]
    assert bell.told.metrics[observe.LATE_DELTAS] == 3
    assert bell.told.lines == [("info", "late changes", {"late": 3, "lanes": [str(LANE), str(OTHER)]})]


def test_more_late_items_than_a_message_names_are_named_by_several_messages() -> None:
    bell = Bell(fold_min=QUIET)
    late = [delta(n % 20, at_ms=n).token for n in range(2 * NAMES_MAX + 1)]
    bell.came(*(delta(n % 20, at_ms=n) for n in reversed(range(2 * NAMES_MAX + 1))))
    parts = late[:NAMES_MAX], late[NAMES_MAX:-1], late[-1:]
    assert bell.taken() == [(Work(LANE, late=Named(tuple(part)), fold=False), 0) for part in parts]


# -- what is spared ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wall_ms", "steady_ms", "spared"),
    [
        (0, 0, True),
        (60_000, 60_000, True),
        (60_001, 60_001, False),
        (60_001, 0, False),
        (0, 60_001, False),
        (-1, 1, False),
    ],
)
def test_a_ring_is_spared_for_a_minute_by_both_clocks(wall_ms: int, steady_ms: int, spared: bool) -> None:
    bell = Bell()
    bell.came(now(1))
    assert bell.taken() == [RING]
    bell.time_goes(wall_ms, steady_ms)
    bell.came(now(2))
    assert bell.taken() == ([] if spared else [RING])
    assert bell.told.metrics[observe.RINGS_SPARED] == spared


def test_the_minute_begins_before_the_message_is_sent() -> None:
    bell = Bell()
    bell.before = lambda request: bell.time_goes(50_000) if isinstance(request, Send) else None
    bell.came(now(1))
    bell.before = lambda request: None
    bell.taken()
    bell.time_goes(10_001)
    bell.came(now(2))
    assert bell.taken() == [RING]


def test_a_spared_ring_does_not_make_the_minute_longer() -> None:
    bell = Bell()
    for _ in range(3):
        bell.came(now(1))
        bell.time_goes(30_001)
    assert bell.taken() == [RING, RING]


def test_nothing_is_spared_for_a_message_that_the_queue_did_not_confirm() -> None:
    bell = Bell()
    bell.queue.refused.add(LANE)
    assert bell.came(now(1, OTHER), now(1)) == from_record(2)
    bell.queue.refused.clear()
    assert bell.taken() == [LATER]
    assert bell.came(now(1)) == NOTHING
    assert bell.taken() == [RING]


def test_nothing_is_spared_for_another_process_or_another_lane() -> None:
    bell = Bell()
    bell.came(now(1))
    bell.ringer = bell.another()
    bell.came(now(1))
    bell.came(now(1, OTHER))
    assert bell.taken() == [RING, RING, LATER]


def test_nothing_is_spared_for_a_message_that_only_names_what_is_late() -> None:
    bell, memory = Bell(), Memory()
    for made_ms, fold_min in ((NOW_MS, QUIET), (1_000, 1)):
        came = arrived([stored(items.delta_item(delta(1)), made_ms=made_ms)], settings(fold_min=fold_min))
        bell.runtime.run(ring(came, Rung(), memory, bell.settings))
    assert [work.fold for work, _ in bell.taken()] == [False, True]


def test_what_came_late_is_never_spared() -> None:
    bell = Bell()
    for n in (1, 2, 3):
        bell.came(delta(n))
    assert [work.late.keys for work, _ in bell.taken() if work.late] == [(token(n),) for n in (1, 2, 3)]
    assert bell.told.metrics[observe.RINGS_SPARED] == 2


def test_a_process_remembers_so_many_lanes_and_no_more() -> None:
    bell, lanes = Bell(), [Lane(A, 0, str(n)) for n in range(3)]
    memory = Memory(listed=LRUCache(2), rung=LRUCache(2))
    for each in (*lanes, lanes[0]):
        came = arrived([stored(items.delta_item(now(1, each)), made_ms=NOW_MS)], bell.settings)
        bell.runtime.run(ring(came, Rung(), memory, bell.settings))
    assert [work.lane for work, _ in bell.taken()] == [*lanes, lanes[0]]
    assert [len(request.keys) for request in bell.asked if isinstance(request, GetMany)] == [1] * 4
    assert (Memory().listed.maxsize, Memory().rung.maxsize) == (KNOWN_MAX, RUNG_MAX)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("lateness_ms", "every_s", "seconds"),
    [(10_000, 60, 75), (10_001, 60, 76), (0, 60, 65), (10_000, 5, 20), (835_000, 60, 900), (3_600_000, 60, 900)],
)
def test_a_ring_waits_until_what_is_spared_for_it_is_old_enough(lateness_ms: int, every_s: int, seconds: int) -> None:
    assert delay_s(settings(allowed_lateness_ms=lateness_ms), every_s) == seconds


@pytest.mark.parametrize(("ahead_ms", "seconds"), [(-1, 75), (5_000, 75), (5_001, 81), (6_000, 81), (300_000, 375)])
def test_a_change_ahead_of_its_record_waits_longer_by_as_much(ahead_ms: int, seconds: int) -> None:
    bell = Bell()
    bell.came(delta(1, at_ms=NOW_MS + ahead_ms))
    assert bell.taken() == [(Work(LANE), seconds)]


def test_a_pack_is_as_far_ahead_as_its_highest_token() -> None:
    bell = Bell()
    bell.came(items.pack_item(pack_of([delta(1, at_ms=NOW_MS + 4_000), delta(2, at_ms=NOW_MS + 12_000)])))
    assert bell.taken() == [(Work(LANE), 87)]


def test_what_is_ahead_and_what_is_not_ring_each_for_itself_and_are_spared_for_what_waits_as_long() -> None:
    bell = Bell()
    far, further = delta(1, at_ms=NOW_MS + 100_000), delta(2, at_ms=NOW_MS + 130_000)
    bell.came(now(3), far)
    assert bell.taken() == [(Work(LANE), 175), RING]
    bell.came(far)  # the last message was the ring, which comes too early for it
    assert bell.taken() == [(Work(LANE), 175)]
    bell.came(now(4), far)
    assert bell.taken() == []
    bell.time_goes(20_000)  # the record is of now, so it is less far ahead
    bell.came(further, made_ms=NOW_MS + 20_000)
    assert bell.taken() == []
    bell.time_goes(30_001)
    bell.came(further, made_ms=NOW_MS + 20_000)
    assert bell.taken() == [(Work(LANE), 185)]


# -- the directory -----------------------------------------------------------------------------------------------------


def test_a_lane_is_put_into_the_directory_once_before_its_batch_is_answered() -> None:
    bell = Bell(fold_min=QUIET)
    bell.came(now(1), now(2), now(3, OTHER))
    assert bell.asked == [
        GetMany((directory.key_of(LANE), directory.key_of(OTHER)), consistent=False),
        PutMany((directory.item_of(LANE), directory.item_of(OTHER))),
    ]
    bell.asked.clear()
    bell.came(now(4))
    assert bell.asked == []
    assert bell.told.metrics[observe.LANES_LISTED] == 2
    assert set(bell.table.items) == {directory.key_of(LANE), directory.key_of(OTHER)}


def test_a_lane_that_somebody_has_listed_is_not_put_and_one_listed_meanwhile_is_not_counted() -> None:
    bell = Bell(fold_min=QUIET)
    bell.table.store([directory.item_of(LANE)])

    def before(request: Any) -> None:
        if isinstance(request, PutMany):
            assert request == PutMany((directory.item_of(OTHER),))
            bell.table.store([directory.item_of(OTHER)])

    bell.before = before
    for _ in range(2):
        assert bell.came(now(1), now(1, OTHER)) == NOTHING
    assert bell.told.metrics[observe.LANES_LISTED] == 0


def test_a_lane_that_could_not_be_listed_comes_again_and_its_message_is_sent_all_the_same() -> None:
    class Failing(Region):
        put_fails, get_fails = True, False

        def answer(self, request: Any, /) -> Any:
            if isinstance(request, GetMany) and self.get_fails:
                raise Unavailable("away")
            if isinstance(request, PutMany) and self.put_fails:
                return tuple(
                    Throttled("slow")
                    if item == directory.item_of(OTHER)
                    else super(Failing, self).answer(PutMany((item,)))[0]
                    for item in request.items
                )
            return super().answer(request)

    table = Failing()
    bell = Bell(table)
    assert bell.came(now(1), now(1), now(1, OTHER), now(2)) == from_record(3)
    assert bell.taken() == [RING, LATER]
    assert bell.told.lines[-1][0] == "error"
    table.put_fails, table.get_fails = False, True
    assert bell.came(now(1, OTHER), now(2)) == from_record(1)
    assert bell.came(now(1)) == NOTHING  # it is known
    table.get_fails = False
    assert bell.came(now(1, OTHER)) == NOTHING
    assert directory.key_of(OTHER) in table.items


def test_a_gate_is_listed_and_does_not_ring() -> None:
    bell = Bell()
    assert bell.came(new_gate(OTHER, Limit(ceiling=5, region=A))) == NOTHING
    assert (bell.taken(), set(bell.table.items)) == ([], {directory.key_of(OTHER)})
    assert gate_key(OTHER) not in bell.table.items


# -- what is none of ours, and failures --------------------------------------------------------------------------------


def record(pk: str, sk: str, event: str = "INSERT", **more: Any) -> dict[str, Any]:
    return stored(keyed(Key(pk, sk)), event) | more


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


def test_records_of_other_regions_and_garbage_are_passed_by_and_counted() -> None:
    bell = Bell()
    assert bell.ringer({"Records": [*GARBAGE, stored(items.delta_item(now(1)), made_ms=NOW_MS)]}) == NOTHING
    assert bell.taken() == [RING]
    assert bell.told.metrics[observe.RECORDS_IGNORED] == len(GARBAGE)
    assert bell.told.metrics[observe.LANES_RUNG] == 1
    assert set(bell.table.items) == {directory.key_of(LANE)}


def test_a_batch_of_nothing_asks_nothing() -> None:
    bell = Bell()
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
def test_whatever_a_record_holds_it_is_passed_by_or_becomes_messages_that_can_be_read(
    sk: str, image: Any, made: Any, sequence: Any
) -> None:
    bell = Bell()
    record = stored(keyed(Key(DELTAS, sk)))
    record["dynamodb"] |= {"NewImage": image, "ApproximateCreationDateTime": made, "SequenceNumber": sequence}
    assert bell.ringer({"Records": [record]}) == NOTHING
    for work, _ in bell.taken():
        assert Work.from_json(work.to_json(), A) == work


def test_the_first_record_of_the_first_lane_that_failed_is_named() -> None:
    bell = Bell()
    third = Lane(A, 0, "third")
    bell.queue.refused |= {OTHER, third}
    came = (now(1), now(1, OTHER), now(2), now(1, third), now(2, OTHER))
    assert bell.came(*came) == from_record(2)
    assert bell.taken() == [RING]
    level, _, told = bell.told.lines[-1]
    assert (level, told["lanes"], told["from"]) == ("error", 2, "2")
    bell.queue.refused.remove(OTHER)
    assert bell.came(*came) == from_record(4)
    bell.queue.down = True
    bell.time_goes(60_001)
    assert bell.came(*came) == from_record(1)


def test_a_late_name_that_could_not_be_sent_fails_its_record_though_its_ring_is_spared() -> None:
    bell = Bell()
    bell.came(now(1))
    bell.queue.down = True
    assert bell.came(now(2), delta(3)) == from_record(1)


def test_a_failure_among_records_without_numbers_fails_the_batch() -> None:
    bell = Bell()
    bell.queue.down = True
    record = stored(items.delta_item(now(1)), made_ms=NOW_MS)
    del record["dynamodb"]["SequenceNumber"]
    with pytest.raises(Unavailable):
        bell.ringer({"Records": [record]})
    assert bell.told.metrics[observe.LANES_RUNG] == 0
