"""The program `settle_named`: what came late counts, whatever a fold does meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.report import Tally
from compactor.settle_named import KEYS_READ, Naming, settle_named
from ledger.core import items, tokens
from ledger.core.errors import DamagedItem
from ledger.core.requests import GetMany, Program, Query, Request, Transact, keyed
from ledger.core.running import through
from ledger.core.values import Delta
from ledger.lane.add import pack_of
from ledger.lane.named import BETWEEN_MAX, KEYS_MAX, Named
from tests.world import LANE, Region, delta, folded, token, value


def named(*numbers: int) -> Named:
    return Named.of(map(token, numbers))


def between(first: int, last: int) -> Named:
    return Named((), ((token(first), token(last)),))


def ask(
    table: Region,
    what: Named,
    tally: Tally | None = None,
    *,
    fold_max: int = 8,
    commits_max: int = 99,
) -> Named:
    """Name these; what is to be named again."""
    tally, naming = Tally() if tally is None else tally, Naming(what)
    table.run(settle_named(LANE, tally, naming, fold_max=fold_max, commits_max=commits_max))
    return naming.above


@pytest.mark.parametrize(("number", "above"), [(1, False), (4, False), (5, True), (6, True)])
def test_a_change_above_the_watermark_is_to_be_named_again(number: int, above: bool) -> None:
    table, _ = folded(2, 4)
    table.drop(items.delta_key(delta(number)))
    table.put(delta(number))
    assert ask(table, named(number)) == (named(number) if above else Named())
    assert value(table) == {2, 4, number}


def test_a_token_with_two_changes_is_settled_as_the_first_has_it() -> None:
    table, _ = folded(9)
    other = items.pack_item(pack_of([delta(1), Delta(LANE, token(3), 7)]))
    table.put(delta(3))
    table.store([other])
    ask(table, Named.of([token(3), other["sk"]["S"]]))
    assert value(table) == {1, 3, 9}
    ask(table, Named.of([token(3), other["sk"]["S"]]), tally := Tally())
    assert tally == Tally()


def test_a_damaged_item_stays_named_and_hides_no_other() -> None:
    table, _ = folded(9, page_size=1)
    table.put(*map(delta, (1, 3, 5, 12)))
    table.store([keyed(items.delta_key(delta(2)), change={"N": "0.5"})])
    naming = Naming(between(1, 12))
    with pytest.raises(DamagedItem):
        table.run(settle_named(LANE, Tally(), naming, fold_max=8))
    assert (naming.undone, naming.above) == (named(2), named(12))
    table.drop(items.delta_key(delta(2)))
    assert value(table) == {1, 3, 5, 9, 12}


@pytest.mark.parametrize("by_range", [True, False])
def test_changes_are_settled_page_by_page(
    by_range: bool,
) -> None:
    table, _ = folded(28, page_size=KEYS_READ)
    late = [Delta(LANE, token(n, at_ms=1_000 + n), 1) for n in range(3 * KEYS_READ + 1)]
    table.store(map(items.delta_item, late))
    keys = [each.token for each in late]
    what = Named((), ((keys[0], keys[-1]),)) if by_range else Named.of(keys)
    naming, tally, settled = Naming(what), Tally(), list[int]()

    def step(request: Request) -> Program[object]:
        """Whoever is stopped here has lost nothing: what is no longer left is listed."""
        segments = [
            items.segment_of(LANE, item)
            for key, item in table.items.items()
            if key.sk.startswith("segment#")
        ]
        listed = {
            tokens.from_bytes(token) for segment in segments for token in segment.entries.tokens
        }
        assert listed.issuperset(key for key in keys if not holds(naming.left, key))
        settled.extend([tally.settled] * isinstance(request, Transact))
        return (yield request)

    table.run(through(settle_named(LANE, tally, naming, fold_max=1_000), step))
    assert (tally.settled, naming.undone, naming.above) == (len(late), Named(), Named())
    assert {
        request.consistent for request in table.asked if isinstance(request, GetMany | Query)
    } == {True}
    assert settled == [0, *(n * KEYS_READ + by_range for n in (1, 2, 3))][: 4 - by_range]


sort_keys = st.integers(0, 3_000).map(token)
pairs = st.lists(st.tuples(sort_keys, sort_keys).map(sorted).map(tuple), max_size=BETWEEN_MAX)
names = st.builds(
    lambda keys, pairs: Named.of(keys) | Named((), tuple(pairs)),
    st.lists(sort_keys, max_size=KEYS_MAX + 20),
    pairs,
)


def holds(what: Named, key: str) -> bool:
    return key in what.keys or any(first <= key <= last for first, last in what.between)


@given(names, names, sort_keys)
def test_what_two_name_their_union_names_and_it_is_small(
    one: Named, other: Named, key: str
) -> None:
    both = one | other
    assert both == other | one
    assert len(both.keys) <= KEYS_MAX
    assert len(both.between) <= BETWEEN_MAX
    assert bool(both) == bool(one or other)
    for each in (
        key,
        *one.keys,
        *other.keys,
        *(end for pair in (*one.between, *other.between) for end in pair),
    ):
        assert holds(both, each) or not (holds(one, each) or holds(other, each))
