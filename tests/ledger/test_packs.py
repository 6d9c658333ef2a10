"""Packs: the format, what is refused, and `Ledger.add_many(pack=True)`."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor import Compactor
from ledger import Change, Delta, Lane, Ledger, Receipt, items, tokens
from ledger.cost import item_bytes
from ledger.entries import ENTRIES_MAX, ENTRY, Entries, Unique, packed
from ledger.errors import DamagedItem, InvalidInput, LedgerError, OutcomeUnknown, TokenConflict
from ledger.lane.add import PACK_CHANGES, add_packed, pack_of
from ledger.memory import MemoryTable
from ledger.ranges import CHANGE_MAX
from ledger.requests import Item, Put, PutMany, Request, key_of
from ledger.values import PACK_SPAN_MS, Pack
from reader import Reader
from tests.world import LANE, LATENESS_MS, NOW_MS, A, B, Region, delta, settings, token

OTHER = Lane(A, 0, "seats")


def pack_item(*numbers: int, lane: Lane = LANE, at_ms: int | None = None) -> Item:
    return items.pack_item(pack_of([delta(n, lane, at_ms) for n in numbers]))


# -- the format --------------------------------------------------------------------------------------------------------


def test_a_pack_is_named_by_its_highest_token_and_the_head_of_the_hash_of_its_entries() -> None:
    data = packed(token(1), -6) + packed(token(2), 10**18)
    item = items.pack_item(Pack(LANE, Entries.read(data)))
    assert item == {
        "pk": {"S": "delta#eu-west-1#0#stock:85123A"},
        "sk": {"S": f"{token(2)}#{hashlib.sha256(data).hexdigest()[:32]}"},
        "entries": {"B": data},
    }
    assert items.pack_item(pack_of([Delta(LANE, token(1), -6)])) == named(packed(token(1), -6), token(1))
    assert list(items.entries_of(LANE, item)) == [(tokens.to_bytes(token(1)), -6), (tokens.to_bytes(token(2)), 10**18)]


def test_a_delta_sorts_before_each_pack_that_ends_with_it_and_both_below_the_bound_after_it() -> None:
    pack = key_of(pack_item(1, 2)).sk
    assert token(1) < token(2) < pack < (items.tail_after(token(2)) or "") < token(3)
    assert items.tail_upto(token(2)) > key_of(pack_item(2, 12)).sk
    assert items.tail_upto(tokens.last_of(tokens.TIME_MS_MAX)) == f"{tokens.last_of(tokens.TIME_MS_MAX)}$"
    assert [items.highest_of(sk) for sk in (token(2), pack, "total", "total#1")] == [token(2), token(2), None, None]


def test_the_largest_pack_fits_an_item_with_room_for_the_longest_name() -> None:
    lane = Lane("r" * 32, 999_999, "c" * 256)
    entries = [ENTRY.pack(tokens.first_of(1)[:8] + n.to_bytes(8, "big"), 1) for n in range(ENTRIES_MAX)]
    assert item_bytes(items.pack_item(Pack(lane, Entries.of(entries)))) < 400 * 1_024
    with pytest.raises(ValueError, match="at most 16000"):
        Entries.read(b"\0" * ENTRY.size * (ENTRIES_MAX + 1))


def named(data: bytes, highest: str = token(2)) -> Item:
    name = f"{highest}#{hashlib.sha256(data).hexdigest()[:32]}"
    return {"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": name}, "entries": {"B": data}}


GOOD = packed(token(1), 4) + packed(token(2), 16)
DAMAGED: Mapping[str, Item] = {
    "empty": named(b""),
    "unsorted": named(packed(token(2), 16) + packed(token(1), 4), token(1)),
    "a token twice": named(packed(token(2), 16) + packed(token(2), 16)),
    "a token with two changes": named(packed(token(2), 4) + packed(token(2), 16)),
    "too long a span": named(packed(token(2), 1) + packed(token(3, 2_001 + PACK_SPAN_MS), 1), token(3, 12_001)),
    "cut in an entry": named(GOOD[:-1]),
    "an entry is gone": {**named(GOOD), "entries": {"B": GOOD[24:]}},
    "another change": {**named(GOOD), "entries": {"B": GOOD[:-1] + b"\1"}},
    "another highest token": named(GOOD, token(3)),
    "too large a change": named(ENTRY.pack(tokens.to_bytes(token(2)), CHANGE_MAX + 1)),
    "too small a change": named(ENTRY.pack(tokens.to_bytes(token(2)), -CHANGE_MAX - 1)),
    "no entries": {**named(GOOD), "entries": {"S": "x"}},
    "no hash": {**named(GOOD), "sk": {"S": f"{token(2)}#"}},
    "no token": {**named(GOOD), "sk": {"S": "0#y"}},
}


@pytest.mark.parametrize("item", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_pack_is_told_with_its_key_by_whoever_reads_it_and_stops_no_other_lane(item: Item) -> None:
    home = Region()
    home.put(delta(1, OTHER))
    home.store([item])
    whole = settings(fold_min=1)
    with pytest.raises(DamagedItem) as damaged:
        items.entries_of(LANE, item)
    assert key_of(item).sk in str(damaged.value)
    reader, compactor = Reader(whole, table=home), Compactor(whole, tables={A: home, B: home}, clock=lambda: NOW_MS)
    calls: list[Callable[[], Any]] = [
        lambda: reader.read(LANE.counter),
        lambda: list(reader.history(LANE.counter)),
        lambda: reader.history_page(LANE.counter),
        lambda: compactor.compact(LANE.counter),
        lambda: compactor.verify(LANE.counter),
    ]
    for call in calls:
        with pytest.raises(DamagedItem):
            call()
    assert home.items[key_of(item)] == item
    report = compactor.run()
    assert [*report.problems] == [LANE]
    assert (report.folded, reader.value("seats")) == (1, 4)


def test_an_entry_of_another_shard_is_damage_where_the_number_of_shards_is_known() -> None:
    shards = settings(shards={"stock:": 2})
    lanes = {tokens.draw(token(n), 2): token(n) for n in (1, 2)}
    lane = shards.lanes_of(LANE.counter, A)[0]
    for number, is_ours in ((lanes[0], True), (lanes[1], False)):
        item = items.pack_item(Pack(Lane(A, 0, LANE.counter), Entries.of([packed(number, 1)])))
        if is_ours:
            assert len(items.entries_of(lane, item)) == 1
            continue
        home = Region()
        home.store([item])
        for call in (Reader(shards, table=home).read, Compactor(shards, tables={A: home, B: home}).compact):
            with pytest.raises(DamagedItem, match="another shard"):
                call(LANE.counter)
    assert [shards.known(Lane(A, shard, LANE.counter)).shards for shard in (1, 2)] == [2, 0]  # nobody reads the third


@given(numbers=st.lists(st.integers(0, 9), unique=True), above=st.integers(-1, 10), upto=st.integers(-1, 10))
def test_the_entries_between_two_tokens_are_those_above_the_one_and_up_to_the_other(
    numbers: list[int], above: int, upto: int
) -> None:
    def place(n: int) -> bytes:
        return (n + 1).to_bytes(16, "big")

    entries = Entries.of(ENTRY.pack(place(n), n) for n in sorted(numbers))
    wanted = [n for n in sorted(numbers) if above < n <= upto]
    found = entries.between(place(above), place(upto))
    assert list(found) == [(place(n), n) for n in wanted]
    assert (found.total, len(found), found) == (sum(wanted), len(wanted), Entries.of(found.apart))


@given(
    times=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4, unique=True).map(sorted), max_size=12),
    span_ms=st.integers(0, 20),
)
@example(times=[[0], [1], [0, 2]], span_ms=0)
def test_a_token_is_new_once_in_items_that_come_in_the_order_of_their_highest_tokens(
    times: list[list[int]], span_ms: int
) -> None:
    def entry(number: int) -> bytes:  # three in a millisecond
        return ENTRY.pack(tokens.first_of(number // 3)[:6] + number.to_bytes(10, "big"), number)

    within = [[number for number in each if each[-1] // 3 - number // 3 <= span_ms] for each in times]
    unique, found = Unique(span_ms), list[bytes]()
    for each in sorted(within, key=lambda each: each[-1]):
        found += unique.new(Entries.of(map(entry, each))).apart
    every = [number for each in within for number in each]
    assert sorted(found) == [entry(number) for number in sorted({*every})]
    assert len(found) + len(unique.again) == len(every)


# -- add_many(pack=True) -----------------------------------------------------------------------------------------------

NOW = datetime.fromtimestamp(NOW_MS / 1_000, UTC)


class Recorder(MemoryTable):
    """Counts requests, and loses the answers of puts of packs while `lost`."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.lost = 0

    def answer(self, request: Request, /) -> Any:
        self.requests.append(request)
        answer = super().answer(request)
        if isinstance(request, Put) and self.lost:
            self.lost -= 1
            raise OutcomeUnknown("lost")
        return answer

    def packs(self) -> list[int]:
        """How many changes each pack has."""
        return [len(items.entries_of(LANE, item)) for key, item in self.items.items() if items.is_pack(key.sk)]


def make() -> tuple[Ledger, Recorder]:
    table = Recorder()
    return Ledger(settings(), table=table, clock=lambda: NOW_MS), table


def change(number: int, seconds: float = 0, counter: str = LANE.counter, amount: int = 1) -> Change:
    return Change(counter, amount, f"key {number}", NOW - timedelta(seconds=seconds))


def told(outcomes: list[Receipt | LedgerError]) -> list[str]:
    return [each.outcome if isinstance(each, Receipt) else type(each).__name__ for each in outcomes]


def test_changes_of_a_lane_within_the_span_travel_in_one_item_and_one_that_is_alone_as_ever() -> None:
    ledger, table = make()
    asked = [change(1), change(2, 10), change(3, 20.001), change(4, counter="seats"), change(5)]
    assert told(ledger.add_many(asked, pack=True)) == ["accepted", "accepted", "recorded", "recorded", "accepted"]
    assert table.packs() == [3]
    assert Reader(settings(), table=table).values([LANE.counter, "seats"]) == {LANE.counter: 4, "seats": 1}


def test_a_change_in_several_packs_and_alone_counts_once() -> None:
    ledger, table = make()
    for batch in ((1, 2, 3), (2, 3, 4), (4, 1), (3, 5), (1, 2, 3)):
        ledger.add_many([change(n) for n in batch], pack=True)
    ledger.add(LANE.counter, 1, idempotency_key="key 2", at=NOW)
    balance = Reader(settings(), table=table).read(LANE.counter)
    assert (balance.value, balance.count, balance.pending, balance.oldest_pending) == (5, 5, 5, NOW)
    assert len(list(Reader(settings(), table=table).history(LANE.counter))) == 5


def test_the_same_token_twice_in_a_call_is_sent_once_and_another_change_under_it_is_a_conflict() -> None:
    ledger, table = make()
    outcomes = ledger.add_many([change(1), change(2), change(1), change(2, amount=7)], pack=True)
    assert told(outcomes) == ["accepted", "accepted", "accepted", "TokenConflict"]
    conflict = outcomes[3]
    assert isinstance(conflict, TokenConflict)
    assert conflict.delta is not None
    assert conflict.delta.change == 7
    assert "with 1 and with 7; the first was sent. Nothing was written for the second: a new change" in str(conflict)
    assert Reader(settings(), table=table).value(LANE.counter) == 2
    alone = ledger.add_many([change(9), change(9), change(9, amount=2)], pack=True)
    assert told(alone) == ["recorded", "replayed", "TokenConflict"]
    assert alone[0].delta == alone[1].delta


def test_a_pack_that_fails_fails_for_each_of_its_changes_with_a_delta_of_its_own_and_may_be_sent_again() -> None:
    ledger, table = make()
    table.lost = 1
    outcomes = ledger.add_many([change(1), change(2), change(1)], pack=True)
    assert told(outcomes) == ["OutcomeUnknown"] * 3
    deltas = [each.delta for each in outcomes]
    assert deltas[0] == deltas[2] != deltas[1]
    assert len({*map(id, outcomes)}) == 3
    assert [ledger.apply(each).outcome for each in deltas if each] == ["recorded", "recorded", "replayed"]
    assert Reader(settings(), table=table).value(LANE.counter) == 2
    alone = add_packed([delta(1)])
    assert next(alone) == PutMany((items.delta_item(delta(1)),))
    with pytest.raises(StopIteration) as ended:
        alone.send((failure := OutcomeUnknown("lost"),))
    assert ended.value.value[0] is failure  # with its cause


def test_a_pack_has_a_bound_and_bad_changes_do_not_keep_the_others() -> None:
    ledger, table = make()
    outcomes = ledger.add_many([*(change(n) for n in range(2 * PACK_CHANGES + 1)), change(0, amount=10**19)], pack=True)
    assert sorted(table.packs()) == [PACK_CHANGES, PACK_CHANGES]
    assert told(outcomes)[-1] == "InvalidChange"
    assert sorted({*told(outcomes)[:-1]}) == ["accepted", "recorded"]
    assert Reader(settings(), table=table).value(LANE.counter) == 2 * PACK_CHANGES + 1


def test_pack_is_true_or_false_and_nothing_is_sent_else() -> None:
    ledger, table = make()
    with pytest.raises(InvalidInput, match="pack"):
        ledger.add_many([change(1)], pack="yes")  # type: ignore[arg-type]
    assert ledger.add_many([], pack=True) == []
    assert table.requests == []


# -- after the clean ---------------------------------------------------------------------------------------------------


def test_packs_are_folded_and_cleaned_and_a_redelivery_in_other_company_counts_nothing_again() -> None:
    home = Region()
    home.store([pack_item(1, 2, 3), pack_item(3, 4)])
    home.put(delta(2))
    whole = settings(regions=(A,))
    compactor = Compactor(whole, tables={A: home}, clock=lambda: home.now_ms)
    reader = Reader(whole, table=home, clock=lambda: home.now_ms)
    value = 4 + 16 + 64 + 256
    for _ in range(3):
        report = compactor.compact(LANE.counter)
        assert reader.read(LANE.counter).value == value
        home.now_ms += whole.keep_ms + 1
    assert not [key for key in home.items if key.pk == items.delta_pk(LANE)]
    home.store([pack_item(1, 4), pack_item(2, 3, 4)])
    assert reader.read(LANE.counter).value == value
    report = compactor.compact(LANE.counter)
    assert (report.folded, report.settled, report.conflicts) == (0, 0, ())
    assert compactor.verify(LANE.counter).ok
    assert [entry.change for entry in reader.history(LANE.counter)] == [4, 16, 64, 256]


def test_a_pack_that_reaches_over_the_watermark_has_entries_in_the_tail_and_strays_below_that_settle_takes() -> None:
    home = Region()
    home.put(delta(2), delta(4))
    whole = settings(fold_min=1)
    compactor = Compactor(whole, tables={A: home, B: home}, clock=lambda: 4_000 + LATENESS_MS)
    compactor.compact(LANE.counter)
    home.store([pack_item(1, 3, 5, 6)])
    reader = Reader(whole, table=home)
    assert reader.read(LANE.counter).value == sum(4**n for n in (2, 4, 5, 6))
    verification = compactor.verify(LANE.counter)
    assert (verification.strays, verification.value, verification.ok) == (2, sum(4**n for n in range(1, 7)), True)
    report = compactor.compact(LANE.counter)
    assert (report.folded, report.settled) == (0, 2)
    assert reader.read(LANE.counter).value == sum(4**n for n in range(1, 7))


def test_two_changes_under_one_token_are_told_by_verify_and_by_clean_and_the_first_item_counts() -> None:
    home = Region()
    home.store([pack_item(1, 2)])
    home.store([items.pack_item(pack_of([Delta(LANE, token(2), 7), delta(3)]))])
    whole = settings(regions=(A,))
    compactor = Compactor(whole, tables={A: home}, clock=lambda: home.now_ms)
    assert Reader(whole, table=home).value(LANE.counter) == 4 + 16 + 64
    (difference,) = compactor.verify(LANE.counter).differences
    assert f"{token(2)} stands in the tail with two changes" in difference
    for _ in range(2):
        assert compactor.compact(LANE.counter).conflicts == ()
        home.now_ms += whole.keep_ms + 1
    assert compactor.compact(LANE.counter).conflicts == (token(2),)
    assert Reader(whole, table=home).value(LANE.counter) == 4 + 16 + 64
