"""Items that are not ours, or damaged: named, never guessed at; other lanes are compacted."""

from collections.abc import Callable
from typing import Any

import pytest

from ledger import items
from ledger.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.values import Lane
from tests.world import COUNTER, LANE, A, Region, compactor, delta, refused, token, two_regions

OTHER = Lane(A, 0, "healthy")
PKS = {"delta": items.delta_pk(LANE), "fold": items.fold_pk(LANE)}


def folded() -> tuple[Region, Region]:
    """Deltas 2 and 4 folded one by one, 6 in the tail."""
    home, away = two_regions()
    home.put(delta(2), delta(4))
    compactor(home, away, fold_max=1).compact(COUNTER)
    home.put(delta(6))
    return home, away


DAMAGED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "junk below the watermark": ("delta", "!junk", {"change": {"N": "1"}}),
    "junk in the tail": ("delta", f"{token(5)}junk", {"change": {"N": "1"}}),
    "a lower-case token": ("delta", token(6).replace("0", "o"), {"change": {"N": "1"}}),
    "a stray that is text": ("delta", token(1), {"change": {"S": "1"}}),
    "a delta in the tail that is a fraction": ("delta", token(5), {"change": {"N": "1.5"}}),
    "a delta without a change": ("delta", token(5), {}),
    "a change too large": ("delta", token(5), {"change": {"N": str(10**18 + 1)}}),
    "a checkpoint without a total": ("fold", "checkpoint", {"count": {"N": "1"}}),
    "a segment of half entries": ("fold", f"segment#{token(4)}#0000000002", {"entries": {"B": b"half"}}),
    "a segment that covers and has no version": ("fold", f"segment#{token(3)}#", {"entries": {"B": b""}}),
    "a note without a time": ("fold", "clean", {"version": {"N": "1"}}),
}


def damage(home: Region, name: str) -> tuple[str, str]:
    kind, sk, attributes = DAMAGED[name]
    home.store([{"pk": {"S": PKS[kind]}, "sk": {"S": sk}, **attributes}])
    home.put(delta(3))  # a stray, so that settle looks at the segments
    return PKS[kind], sk


@pytest.mark.parametrize("name", [name for name in DAMAGED if "lower-case" not in name])
def test_compact_names_the_item_and_run_reports_the_lane_and_compacts_the_others(name: str) -> None:
    home, away = folded()
    key = damage(home, name)
    with pytest.raises(DamagedItem) as raised:
        compactor(home, away).compact(COUNTER)
    assert (raised.value.pk, raised.value.sk) == key
    home, away = folded()
    damage(home, name)
    home.put(delta(1, OTHER))
    report = compactor(home, away).run()
    problem = report.problems[LANE]
    assert isinstance(problem, DamagedItem)
    assert (problem.pk, problem.sk) == key
    assert list(report.problems) == [LANE]
    assert items.checkpoint_key(OTHER) in home.items


def test_a_damaged_lane_of_a_counter_does_not_keep_its_other_shards_from_being_compacted() -> None:
    home, away = two_regions()
    lanes = [Lane(A, shard, COUNTER) for shard in range(3)]
    home.put(*(delta(n, lane) for n, lane in enumerate(lanes)))
    home.store([{"pk": {"S": items.delta_pk(lanes[0])}, "sk": {"S": "!"}, "change": {"N": "1"}}])
    with pytest.raises(DamagedItem):
        compactor(home, away, shards={"stock:": 3}).compact(COUNTER)
    assert {items.checkpoint_key(lane) for lane in lanes[1:]} <= set(home.items)


def _a_missing_last_segment(home: Region) -> None:
    home.drop(items.segment_key(LANE, token(4), 2))
    home.now_ms += 300_000


def _a_version_that_none_can_follow(home: Region) -> None:
    home.alter(items.checkpoint_key(LANE), version={"N": "9999999999"})
    home.alter(items.segment_key(LANE, token(4), 2), sk={"S": f"segment#{token(4)}#9999999999"})


@pytest.mark.parametrize(
    "harm",
    [
        *(_a_missing_last_segment, _a_version_that_none_can_follow),
        lambda home: home.alter(items.checkpoint_key(LANE), watermark={"S": token(6)}),
        lambda home: home.alter(items.checkpoint_key(LANE), count={"N": str(10**20 - 1)}),
    ],
    ids=["the last segment", "a version that none can follow", "no cover", "a count that none can follow"],
)
def test_a_damaged_lane_is_reported_and_stays_as_it_is(harm: Callable[[Region], None]) -> None:
    home, away = folded()
    harm(home)
    home.put(delta(5), delta(1, OTHER))
    before = {key: item for key, item in home.items.items() if key.pk in PKS.values()}
    problem: LedgerError = compactor(home, away).run().problems[LANE]
    assert isinstance(problem, LaneDamaged)
    assert {key: item for key, item in home.items.items() if key.pk in PKS.values()} == before


def test_a_version_that_none_can_follow_is_not_rebuilt_and_one_of_too_many_digits_is() -> None:
    home, away = folded()
    _a_version_that_none_can_follow(home)
    says = rf"^{LANE}: no checkpoint can follow what stands in the table: .*9999999999.* Nothing was written\. Look at"
    with refused(home, LaneDamaged, says):
        compactor(home, away).rebuild(COUNTER)
    home, away = folded()
    home.alter(items.checkpoint_key(LANE), version={"N": "1" * 38})
    with pytest.raises(DamagedItem, match="version"):
        compactor(home, away).compact(COUNTER)
    assert compactor(home, away).rebuild(COUNTER) == {LANE: 4**2 + 4**4}
    assert compactor(home, away).verify(COUNTER).ok
