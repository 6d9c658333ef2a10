"""Packs: the format, what is refused, and `Ledger.add_many(pack=True)`."""

import hashlib
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import Change, Delta, Lane
from ledger.client.preparing import ours
from ledger.core import items, tokens
from ledger.core.checks import to_datetime
from ledger.core.cost import item_bytes
from ledger.core.entries import ENTRIES_MAX, ENTRY, Entries, Unique, packed
from ledger.core.errors import DamagedItem, InvalidInput, OutcomeUnknown
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Item, Put, PutMany, Together, key_of
from ledger.core.values import PACK_SPAN_MS, Pack
from ledger.lane.add import PACK_CHANGES, add_packed, pack_of
from tests.world import COUNTER, LANE, NOW_MS, A, World, delta, fail, outcomes_of, token

OTHER = Lane(A, 0, "seats")


def pack_item(*numbers: int) -> Item:
    return items.pack_item(pack_of([delta(n) for n in numbers]))


def one_region(**changed: Any) -> World:
    return World((A,), now_ms=NOW_MS, **changed)


def named(data: bytes, highest: str = token(2)) -> Item:
    name = f"{highest}#{hashlib.sha256(data).hexdigest()[:32]}"
    return {
        "pk": {"S": "delta#eu-west-1#0#stock:85123A"},
        "sk": {"S": name},
        "entries": {"B": data},
    }


def test_a_pack_is_named_by_its_highest_token_and_a_hash() -> None:
    data = packed(token(1), -6) + packed(token(2), 10**18)
    item = items.pack_item(Pack(LANE, Entries.read(data)))
    assert item == named(data)
    assert items.pack_item(pack_of([Delta(LANE, token(1), -6)])) == named(
        packed(token(1), -6), token(1)
    )
    assert list(items.entries_of(LANE, item)) == [
        (tokens.to_bytes(token(1)), -6),
        (tokens.to_bytes(token(2)), 10**18),
    ]
    # the largest fits an item with room for the longest name
    lane = Lane("r" * 32, 999_999, "c" * 256)
    entries = [
        ENTRY.pack(tokens.first_of(1)[:8] + n.to_bytes(8, "big"), 1) for n in range(ENTRIES_MAX)
    ]
    assert item_bytes(items.pack_item(Pack(lane, Entries.of(entries)))) < 400 * 1_024
    with pytest.raises(ValueError, match="at most 16000"):
        Entries.read(b"\0" * ENTRY.size * (ENTRIES_MAX + 1))


def test_a_delta_sorts_before_the_packs_that_end_with_it() -> None:
    pack = key_of(pack_item(1, 2)).sk
    assert token(1) < token(2) < pack < (items.tail_after(token(2)) or "") < token(3)
    assert items.tail_upto(token(2)) > key_of(pack_item(2, 12)).sk
    assert (
        items.tail_upto(tokens.last_of(tokens.TIME_MS_MAX))
        == f"{tokens.last_of(tokens.TIME_MS_MAX)}$"
    )
    assert [items.highest_of(sk) for sk in (token(2), pack, "total", "total#1")] == [
        token(2),
        token(2),
        None,
        None,
    ]


GOOD = packed(token(1), 4) + packed(token(2), 16)
DAMAGED = [
    named(b""),
    named(packed(token(2), 16) + packed(token(1), 4), token(1)),  # unsorted
    named(packed(token(2), 16) + packed(token(2), 16)),
    # too long a span
    named(packed(token(2), 1) + packed(token(3, 2_001 + PACK_SPAN_MS), 1), token(3, 12_001)),
    named(GOOD[:-1]),
    {**named(GOOD), "entries": {"B": GOOD[24:]}},
    {**named(GOOD), "entries": {"B": GOOD[:-1] + b"\1"}},
    named(GOOD, token(3)),
    named(ENTRY.pack(tokens.to_bytes(token(2)), CHANGE_MAX + 1)),
    named(ENTRY.pack(tokens.to_bytes(token(2)), -CHANGE_MAX - 1)),
    {**named(GOOD), "entries": {"S": "x"}},
    {**named(GOOD), "sk": {"S": f"{token(2)}#"}},
    {**named(GOOD), "sk": {"S": "0#y"}},
]


def test_a_damaged_pack_is_named_and_stops_no_other_lane() -> None:
    for item in DAMAGED:
        with pytest.raises(DamagedItem) as damaged:
            items.entries_of(LANE, item)
        assert key_of(item).sk in str(damaged.value)
    world = one_region()
    world.home.put(delta(1, OTHER))
    world.home.store([DAMAGED[0]])
    for call in (world.reader().read, world.reader().history_page, world.compactor().compact):
        with pytest.raises(DamagedItem):
            call(COUNTER)
    report = world.compactor().run()
    assert ([*report.problems], report.folded, world.value("seats")) == ([LANE], 1, 4)
    assert world.home.items[key_of(DAMAGED[0])] == DAMAGED[0]


@given(
    numbers=st.lists(st.integers(0, 9), unique=True),
    above=st.integers(-1, 10),
    upto=st.integers(-1, 10),
)
def test_entries_between_two_tokens_leave_the_lower_one_out(
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
    times=st.lists(
        st.lists(st.integers(0, 60), min_size=1, max_size=4, unique=True).map(sorted), max_size=12
    ),
    span_ms=st.integers(0, 20),
)
@example(times=[[0], [1], [0, 2]], span_ms=0)
def test_a_token_is_new_once_whichever_item_brings_it(times: list[list[int]], span_ms: int) -> None:
    def entry(number: int) -> bytes:  # three in a millisecond
        return ENTRY.pack(tokens.first_of(number // 3)[:6] + number.to_bytes(10, "big"), number)

    within = [
        [number for number in each if each[-1] // 3 - number // 3 <= span_ms] for each in times
    ]
    unique, found = Unique(span_ms), list[bytes]()
    for each in sorted(within, key=lambda each: each[-1]):
        found += unique.new(Entries.of(map(entry, each))).apart
    every = [number for each in within for number in each]
    assert sorted(found) == [entry(number) for number in sorted({*every})]
    assert len(found) + len(unique.again) == len(every)


def change(number: int, seconds: float = 0, counter: str = COUNTER, amount: int = 1) -> Change:
    return Change(
        counter, amount, f"key {number}", to_datetime(NOW_MS) - timedelta(seconds=seconds)
    )


def test_changes_of_a_lane_within_the_span_share_an_item() -> None:
    world = one_region()
    asked = [change(1), change(2, 10), change(3, 20.001), change(4, counter="seats"), change(5)]
    for alone in ("recorded", "replayed"):
        outcomes = world.ledger().add_many(asked, pack=True)
        assert outcomes_of(outcomes) == ["accepted", "accepted", alone, alone, "accepted"]
    assert [len(request.items) for request in world.home.asked if isinstance(request, PutMany)] == [
        3,
        3,
    ]
    packs = [item for key, item in world.home.items.items() if items.is_pack(key.sk)]
    assert [len(items.entries_of(LANE, item)) for item in packs] == [3]
    assert world.reader().values([COUNTER, "seats"]) == {COUNTER: 4, "seats": 1}


def test_a_token_twice_in_a_call_is_sent_once_or_a_conflict() -> None:
    world = one_region()
    outcomes = world.ledger().add_many(
        [change(1), change(2), change(1), change(2, amount=7)], pack=True
    )
    assert outcomes_of(outcomes) == ["accepted", "accepted", "accepted", "TokenConflict"]
    conflict: Any = outcomes[3]
    assert conflict.delta.change == 7
    assert (
        "with 1 and with 7; the first was sent. Nothing was written for the second. A new change"
        in str(conflict)
    )
    assert world.value() == 2
    alone = world.ledger().add_many([change(9), change(9), change(9, amount=2)], pack=True)
    assert outcomes_of(alone) == ["recorded", "replayed", "TokenConflict"]
    assert alone[0].delta == alone[1].delta


def test_a_failed_pack_fails_each_change_and_may_be_sent_again() -> None:
    world = one_region()
    world.home.after(Put, fail(OutcomeUnknown("lost")), times=1)
    outcomes = world.ledger().add_many([change(1), change(2), change(1)], pack=True)
    assert outcomes_of(outcomes) == ["OutcomeUnknown"] * 3
    deltas = [each.delta for each in outcomes]
    assert deltas[0] == deltas[2] != deltas[1]
    assert len({*map(id, outcomes)}) == 3
    assert [world.ledger().apply(each).outcome for each in deltas] == [
        "recorded",
        "recorded",
        "replayed",
    ]
    assert world.value() == 2
    alone = add_packed([delta(1)])
    assert next(alone) == PutMany((items.delta_item(delta(1)),))
    with pytest.raises(StopIteration) as ended:
        alone.send((failure := OutcomeUnknown("lost"),))
    assert ended.value.value[0] is failure  # with its cause


def test_a_pack_is_bounded_and_a_bad_change_keeps_no_other() -> None:
    world = one_region()
    with pytest.raises(InvalidInput, match="pack"):
        world.ledger().add_many([change(1)], pack="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^add_many takes Change"):
        world.ledger().add_many([5])  # type: ignore[list-item]
    assert (world.ledger().add_many([], pack=True), world.home.asked) == ([], [])
    every = [*(change(n) for n in range(2 * PACK_CHANGES + 1)), change(0, amount=10**19)]
    outcomes = outcomes_of(world.ledger().add_many(every, pack=True))
    assert len([key for key in world.home.items if items.is_pack(key.sk)]) == 2
    assert (outcomes[-1], {*outcomes[:-1]}) == ("InvalidChange", {"accepted", "recorded"})
    assert world.value() == 2 * PACK_CHANGES + 1


def test_without_keys_a_batch_shares_lanes_that_are_drawn() -> None:
    """Each pack's worth of changes is in one of the shards, and batches are in others."""
    world = one_region(shards={COUNTER: 100}, limits={}, unshared_limits=True)
    ledger, unkeyed = world.ledger(), [Change(COUNTER, 1)]
    lanes = list[list[Lane]]()
    for _ in range(20):
        world.home.asked.clear()
        lanes.append([one.delta.lane for one in ledger.add_many(unkeyed * 100, pack=True)])
        (put,) = [request for request in world.home.asked if isinstance(request, Together)]
        assert len(put.requests) == 1
    assert [len({*found}) for found in lanes] == [1] * 20
    assert len({found[0] for found in lanes}) > 10
    many = ledger.add_many(unkeyed * (2 * PACK_CHANGES + 1), pack=True)
    drawn = [one.delta.lane for one in many]
    assert [len({*drawn[:PACK_CHANGES]}), len({*drawn[PACK_CHANGES : 2 * PACK_CHANGES]})] == [1, 1]
    assert 1 < len({*drawn}) <= 3
    deltas = [one.delta for one in many]
    assert len({one.token for one in deltas}) == len(deltas)
    assert all(ours(ledger.settings, one) == one for one in deltas)  # a retry finds its lane
    assert {ledger.apply(one).outcome for one in deltas[:2]} == {"recorded"}  # beside the pack
    assert world.value() == 20 * 100 + 2 * PACK_CHANGES + 1
    keyed = [change(number) for number in range(100)]
    assert len({one.delta.lane for one in ledger.add_many(keyed, pack=True)}) > 30
    alone = ledger.add_many(unkeyed * 100)
    assert len({one.delta.lane for one in alone}) > 30


def test_changes_stay_several_where_entropy_counts_up() -> None:
    """As in tests of users: each token is another, and few bits tell them apart."""
    numbers = count()
    for shards in (2, 4, 100):
        world = one_region(shards={COUNTER: shards}, limits={}, unshared_limits=True)
        world.entropy = lambda size: next(numbers).to_bytes(size, "big")
        found = world.ledger().add_many([Change(COUNTER, 1)] * 50, pack=True)
        assert len({one.delta.token for one in found}) == 50
        assert world.value() == 50


@given(
    st.integers(0, 2**80 - 1),
    st.integers(1, 1_000).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))),
)
@example(2**80 - 1, (0, 7))
def test_a_token_goes_to_a_side_and_stays_what_it_was(number: int, place: tuple[int, int]) -> None:
    before, (side, sides) = tokens.make(NOW_MS, number.to_bytes(10, "big")), place
    after = tokens.on_side(before, side, sides)
    assert (tokens.draw(after, sides), tokens.time_ms(after)) == (side, NOW_MS)
    assert tokens.on_side(before, side, sides) == after
    assert (tokens.draw(before, sides) == side) == (after == before)


def test_of_two_changes_under_one_token_the_first_counts() -> None:
    world = one_region()
    world.home.store(
        [pack_item(1, 2), items.pack_item(pack_of([Delta(LANE, token(2), 7), delta(3)]))]
    )
    assert world.value() == 4 + 16 + 64
    (difference,) = world.compactor().verify(COUNTER).differences
    assert f"{token(2)} with two changes" in difference
    for _ in range(2):
        assert world.compactor().compact(COUNTER).conflicts == ()
        world.now_ms += world.settings().keep_ms + 1
    assert world.compactor().compact(COUNTER).conflicts == (token(2),)
    assert world.value() == 4 + 16 + 64
