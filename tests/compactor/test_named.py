"""The program `settle_named`: what came late counts, whatever a fold does meanwhile."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compactor.fold
from compactor.fold import QUERY_MS, fold
from compactor.named import ASK_AGAIN_MS, BETWEEN_MAX, KEYS_MAX, KEYS_READ, Named, Naming, settle_named
from compactor.report import Tally
from compactor.settle import settle
from ledger import items, tokens
from ledger.conditions import Absent
from ledger.errors import DamagedItem, GaveUp, LaneDamaged
from ledger.lane.add import pack_of
from ledger.lane.tail import through
from ledger.requests import Get, GetMany, Item, Key, Now, Program, Put, Query, Request, Result, Transact, keyed
from ledger.values import Checkpoint, Delta, Segment
from tests.orders import Process, Scene, every_order
from tests.world import LANE, LATENESS_MS, Region, delta, refused, token, value
from tests.world import compactor as compactor_of


def folded(*numbers: int, page_size: int = 1_000) -> Region:
    """A lane in which each of these deltas was folded by a commit of its own."""
    home = Region(page_size=page_size)
    home.put(*map(delta, numbers))
    compactor_of(home, home, fold_max=1, clean=False).compact(LANE.counter)
    home.asked.clear()
    return home


def named(*numbers: int) -> Named:
    return Named.of(map(token, numbers))


def between(first: int, last: int) -> Named:
    return Named((), ((token(first), token(last)),))


def pack(*numbers: int) -> Item:
    return items.pack_item(pack_of(list(map(delta, numbers))))


def ask(table: Region, what: Named, tally: Tally | None = None, *, fold_max: int = 8, commits_max: int = 99) -> Named:
    """Name these; what is to be named again."""
    tally, naming = Tally() if tally is None else tally, Naming(what)
    table.run(settle_named(LANE, tally, naming, fold_max=fold_max, commits_max=commits_max))
    return naming.above


BEGIN = [Get(items.checkpoint_key(LANE), True), Get(items.segment_key(LANE, token(2), 1), True)]


def test_it_begins_then_reads_what_is_named_then_begins_confirms_and_commits_all_strongly() -> None:
    table = folded(2)
    table.put(delta(1), delta(3))
    assert ask(table, named(1, 3), tally := Tally()) == named(3)
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 2, token(2), table.now_ms)
    segment = Segment.of(LANE, token(2), 2, [delta(1)])
    assert table.asked == [
        *BEGIN,
        GetMany((items.delta_key(delta(1)), items.delta_key(delta(3))), True),
        *BEGIN,
        Now(),
        Query(items.fold_pk(LANE), f"segment#{token(1)}", "segment$", 1, True),
        Transact(
            (
                Put(items.checkpoint_item(checkpoint), items.version_is(1)),
                Put(items.segment_item(segment), Absent()),
            )
        ),
    ]
    assert (tally.settled, tally.commits) == (1, 1)
    assert value(table) == {1, 2, 3}


def test_a_range_is_read_strongly_from_its_first_item_to_its_last() -> None:
    table = folded(9, page_size=1)
    table.put(*map(delta, range(1, 8)))
    assert ask(table, between(2, 5), tally := Tally()) == Named()
    assert table.asked[2] == GetMany((items.delta_key(delta(2)),), True)
    pages = [each for each in table.asked if isinstance(each, Query) and each.pk == items.delta_pk(LANE)]
    assert pages == [Query(items.delta_pk(LANE), token(n), token(5), None, True) for n in (2, 3, 4)]
    assert (tally.settled, value(table)) == (4, {2, 3, 4, 5, 9})


def test_what_is_gone_was_cleaned_so_it_was_listed_and_is_dropped() -> None:
    table = folded(2, 4)
    table.drop(items.delta_key(delta(2)))
    before = dict(table.items)
    assert ask(table, Named((token(1), token(2), token(4)), ((token(1), token(2)),)), tally := Tally()) == Named()
    assert (tally, table.items) == (Tally(), before)


def test_an_item_that_eventual_reads_do_not_see_yet_is_settled() -> None:
    table = folded(2)
    table.lag()
    table.put(delta(0), delta(1))
    ask(table, named(1) | between(0, 0))
    assert value(table) == {0, 1, 2}


@pytest.mark.parametrize(("number", "above"), [(1, False), (4, False), (5, True), (6, True)])
def test_what_is_above_the_watermark_is_to_be_named_again_and_the_watermark_is_below(number: int, above: bool) -> None:
    table = folded(2, 4)
    table.drop(items.delta_key(delta(number)))
    table.put(delta(number))
    assert ask(table, named(number)) == (named(number) if above else Named())
    assert value(table) == {2, 4, number}


def test_what_a_range_has_above_the_watermark_is_to_be_named_again_by_itself() -> None:
    table = folded(4)
    table.put(delta(1), delta(5), delta(8))
    what = between(0, 4) | between(1, 5) | named(2, 8)
    assert ask(table, what) == named(5, 8)
    assert value(table) == {1, 4, 5, 8}


def test_a_pack_that_reaches_over_the_watermark_is_settled_below_it_and_named_again() -> None:
    table = folded(2, 4)
    item = pack(1, 3, 4, 5)
    table.store([item])
    sk = item["sk"]["S"]
    assert ask(table, Named((sk,)), tally := Tally()) == Named((sk,))
    assert (tally.settled, value(table)) == (2, {1, 2, 3, 4, 5})
    assert ask(table, Named((sk,)), tally := Tally()) == Named((sk,))
    assert tally == Tally()


def test_a_token_in_two_named_items_is_settled_once() -> None:
    table = folded(9)
    table.put(delta(3))
    packs = [pack(1, 3), pack(2, 3, 5)]
    table.store(packs)
    ask(table, Named.of([token(3), *(each["sk"]["S"] for each in packs)]), tally := Tally(), fold_max=2)
    assert (tally.settled, tally.commits) == (4, 2)
    assert value(table) == {1, 2, 3, 5, 9}


def test_a_token_in_two_named_items_with_two_changes_is_settled_as_the_first_has_it() -> None:
    table = folded(9)
    other = items.pack_item(pack_of([delta(1), Delta(LANE, token(3), 7)]))
    table.put(delta(3))
    table.store([other])
    ask(table, Named.of([token(3), other["sk"]["S"]]))
    assert value(table) == {1, 3, 9}
    ask(table, Named.of([token(3), other["sk"]["S"]]), tally := Tally())
    assert tally == Tally()


def test_what_is_listed_with_another_change_is_not_settled() -> None:
    table = folded(2, 4)
    table.store([items.delta_item(Delta(LANE, token(2), 99))])
    assert ask(table, named(2), tally := Tally()) == Named()
    assert (tally, value(table)) == (Tally(), {2, 4})


def test_a_damaged_item_stays_named_and_hides_none_of_a_later_page() -> None:
    table = folded(9, page_size=1)
    table.put(*map(delta, (1, 3, 5, 12)))
    table.store([keyed(items.delta_key(delta(2)), change={"N": "0.5"})])
    naming = Naming(between(1, 12))
    with pytest.raises(DamagedItem):
        table.run(settle_named(LANE, Tally(), naming, fold_max=8))
    assert (naming.undone, naming.above) == (named(2), named(12))
    table.drop(items.delta_key(delta(2)))
    assert value(table) == {1, 3, 5, 9, 12}


def test_damage_is_told_when_the_others_are_settled() -> None:
    table = folded(9)
    table.put(delta(1), delta(3), delta(5))
    key = items.delta_key(delta(2))
    table.store([keyed(key, change={"N": "0.5"})])
    with pytest.raises(DamagedItem) as raised:
        ask(table, named(1, 2, 3) | between(2, 5))
    assert (raised.value.pk, raised.value.sk) == (key.pk, key.sk)
    table.drop(key)
    assert value(table) == {1, 3, 5, 9}


def test_a_stray_without_a_cover_is_damage_of_the_lane_and_nothing_is_written() -> None:
    table = folded(2)
    table.alter(items.checkpoint_key(LANE), watermark={"S": token(5)})
    table.put(delta(4))
    with refused(table, LaneDamaged, token(4)):
        ask(table, named(4))


def test_a_commit_that_is_landing_gives_up() -> None:
    table = folded(2)
    table.put(delta(1))
    table.drop(items.segment_key(LANE, token(2), 1))
    with refused(table, GaveUp):
        ask(table, named(1))


def test_where_nothing_was_folded_yet_all_is_above() -> None:
    table = Region()
    table.put(delta(1))
    what = named(1, 2) | between(3, 4)
    assert ask(table, what) == what
    assert not [request for request in table.asked if isinstance(request, GetMany)]
    assert ask(table, Named()) == Named()


def test_its_commits_are_bounded_and_what_is_left_is_told() -> None:
    table = folded(9)
    table.put(*map(delta, range(7)))
    ask(table, named(*range(7)), tally := Tally(), fold_max=2, commits_max=3)
    assert (tally.settled, tally.commits, tally.unsettled) == (6, 3, True)
    ask(table, named(*range(7)), tally := Tally(), fold_max=2, commits_max=3)
    assert (tally.settled, tally.commits, tally.unsettled) == (1, 1, False)
    assert value(table) == {*range(7), 9}


@pytest.mark.parametrize("by_range", [True, False])
def test_many_are_settled_page_by_page_and_what_is_left_is_known_at_every_request(by_range: bool) -> None:
    table = folded(28, page_size=KEYS_READ)
    late = [Delta(LANE, token(n, at_ms=1_000 + n), 1) for n in range(3 * KEYS_READ + 1)]
    table.store(map(items.delta_item, late))
    keys = [each.token for each in late]
    what = Named((), ((keys[0], keys[-1]),)) if by_range else Named.of(keys)
    naming, tally, settled = Naming(what), Tally(), list[int]()

    def step(request: Request) -> Program[object]:
        """Whoever is stopped here has lost nothing: what is no longer left is listed."""
        segments = [items.segment_of(LANE, item) for key, item in table.items.items() if key.sk.startswith("segment#")]
        listed = {tokens.from_bytes(token) for segment in segments for token in segment.entries.tokens}
        assert listed.issuperset(key for key in keys if not holds(naming.left, key))
        settled.extend([tally.settled] * isinstance(request, Transact))
        return (yield request)

    table.run(through(settle_named(LANE, tally, naming, fold_max=1_000), step))
    assert (tally.settled, naming.undone, naming.above) == (len(late), Named(), Named())
    assert settled == [0, *(n * KEYS_READ + by_range for n in (1, 2, 3))][: 4 - by_range]


sort_keys = st.integers(0, 3_000).map(token)
pairs = st.lists(st.tuples(sort_keys, sort_keys).map(sorted).map(tuple), max_size=BETWEEN_MAX)
names = st.builds(
    lambda keys, pairs: Named.of(keys) | Named((), tuple(pairs)), st.lists(sort_keys, max_size=KEYS_MAX + 20), pairs
)


def holds(what: Named, key: str) -> bool:
    return key in what.keys or any(first <= key <= last for first, last in what.between)


@given(names, names, sort_keys)
def test_what_two_name_their_union_names_and_it_is_small(one: Named, other: Named, key: str) -> None:
    both = one | other
    assert both == other | one
    assert len(both.keys) <= KEYS_MAX
    assert len(both.between) <= BETWEEN_MAX
    assert bool(both) == bool(one or other)
    for each in (key, *one.keys, *other.keys, *(end for pair in (*one.between, *other.between) for end in pair)):
        assert holds(both, each) or not (holds(one, each) or holds(other, each))


def test_candidates_come_in_any_order_and_each_is_settled_once_under_its_own_cover() -> None:
    table = folded(3, 9, page_size=1)
    table.store([pack(2, 8), pack(5, 7)])  # in the order of items 7 comes before 2
    table.put(delta(5))
    table.run(settle(LANE, tally := Tally(), token(9), fold_max=8))
    assert tally.settled == 4
    assert value(table) == {2, 3, 5, 7, 8, 9}


# -- beside a fold -----------------------------------------------------------------------------------------------------


def unhurried(program: Program[Result], table: Region) -> Process[Result]:
    """A program that stops before each request, the time too, but not between the last time it asks for and the commit
    that rests on it. It yields what it was told since its last stop."""
    told: list[object] = []

    def step(request: Request) -> Process[object]:
        if not isinstance(request, Transact | Put):
            yield hash(repr(told))
            told.clear()
        told.append(table.now() if isinstance(request, Now) else table.answer(request))
        return told[-1]

    return through(program, step)


def folding(table: Region) -> Process[None]:
    program = fold(LANE, Tally(), allowed_lateness_ms=LATENESS_MS, fold_min=1, fold_max=8, commits_max=1)
    with suppress(GaveUp):
        yield from unhurried(program, table)


def serving(table: Region, what: Named) -> Process[Named]:
    """A message that names something, sent again as long as it gives up."""
    while True:
        with suppress(GaveUp):
            naming = Naming(what)
            yield from unhurried(settle_named(LANE, Tally(), naming, fold_max=8), table)
            return naming.above
        yield "gave up"


def arriving(table: Region, late: Item, wait_ms: int | None) -> Process[None]:
    """The late item is put; then its message is served, and, `wait_ms` later, the one for what was above."""
    yield "put"
    table.store([late])
    again = yield from serving(table, Named((late["sk"]["S"],)))
    if again and wait_ms is not None:
        yield "above"
        table.now_ms += wait_ms
        table.steady_ms += wait_ms
        yield from serving(table, again)


def orders(late: Item, counted: set[int], wait_ms: int | None) -> int:
    """Every order of an item's arrival, its messages, and a fold that passes it; in the end all is to be counted."""

    def make() -> Scene:
        table = folded(2)
        table.put(delta(9))
        left = set[int]()

        def watched(number: int, process: Process[None]) -> Iterator[object]:
            yield from process
            left.discard(number)

        def check() -> None:
            if not left:
                assert value(table) == counted

        processes = [arriving(table, late, wait_ms), folding(table)]
        left.update((0, 1))
        return [table], [watched(n, each) for n, each in enumerate(processes)], check

    return every_order(make)


LATE = items.delta_item(delta(5))


@pytest.mark.parametrize(
    ("late", "counted"),
    [
        (LATE, {2, 5, 9}),
        (items.delta_item(delta(1)), {1, 2, 9}),
        (pack(1, 5), {1, 2, 5, 9}),
        (pack(5, 10), {2, 5, 9, 10}),
    ],
    ids=["above", "below", "a pack over the watermark", "a pack over the fold's"],
)
def test_a_late_change_counts_in_every_order_of_a_fold_and_its_two_messages(late: Item, counted: set[int]) -> None:
    assert orders(late, counted, ASK_AGAIN_MS) > 40


def test_the_second_message_must_come_when_no_fold_that_did_not_see_the_change_can_commit_any_more() -> None:
    assert orders(LATE, {2, 5, 9}, QUERY_MS + 1) > 40
    with pytest.raises(AssertionError):
        orders(LATE, {2, 5, 9}, QUERY_MS)
    assert ASK_AGAIN_MS >= 2 * QUERY_MS


def test_once_is_not_enough_for_a_change_that_a_fold_is_about_to_pass() -> None:
    with pytest.raises(AssertionError):
        orders(LATE, {2, 5, 9}, None)


def test_twice_is_not_enough_beside_a_fold_that_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactor.fold, "QUERY_MS", 10**9)
    with pytest.raises(AssertionError):
        orders(LATE, {2, 5, 9}, ASK_AGAIN_MS)


def test_a_key_that_names_no_item_of_the_lane_is_as_good_as_gone() -> None:
    table = folded(2)
    assert ask(table, Named((f"{token(1)}#x",))) == Named()
    assert Key(items.delta_pk(LANE), f"{token(1)}#x") not in table.items
