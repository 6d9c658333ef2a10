"""verify: a counter recounted, and every difference told."""

from collections.abc import Callable

import pytest

from compactor.verify import LaneCheck, verify
from ledger.core import items
from ledger.core.days import Bucket, Days
from ledger.core.errors import ReadTooSlow
from ledger.core.requests import DeleteMany, Get, Put, Transact
from ledger.core.values import Delta, Segment
from tests.world import (
    COUNTER,
    LANE,
    READ_MS,
    Region,
    compactor,
    delta,
    folded,
    summed,
    token,
)

CHECKPOINT = items.checkpoint_key(LANE)


def lane(page_size: int = 2) -> tuple[Region, Region]:
    """Folded 2 and 4 one by one, settled 1, tail 5."""
    home, away = folded(2, 4, later=(1,), page_size=page_size)
    compactor(home, away).compact(COUNTER)
    home.put(delta(5))
    home.asked.clear()
    return home, away


def test_what_it_costs() -> None:
    """It begins, then reads the tail, then the segments, then what is below, all strongly."""
    home, _ = lane(page_size=1_000)
    home.run(verify(LANE))
    assert home.in_short == [
        *("now", "get checkpoint strongly", "get segment strongly", "query delta strongly", "now"),
        *("query segment strongly", "query delta strongly"),
        *("query segment 1 strongly", "query segment strongly", "query segment 1 strongly"),
    ]


def _watermark(number: int) -> Callable[[Region], None]:
    return lambda home: home.alter(CHECKPOINT, watermark={"S": token(number)})


def _lists(number: int) -> Callable[[Region], None]:
    """One more segment of the range above 2 up to 4, which lists this delta."""
    return lambda home: home.store(
        [items.segment_item(Segment.of(LANE, token(4), 3, [delta(number)]))]
    )


def _lists_two(home: Region) -> None:
    _lists(4)(home)
    home.store([items.segment_item(Segment.of(LANE, token(4), 1, [delta(3)]))])


def _another_change(home: Region) -> None:
    home.drop(items.delta_key(delta(1)))  # so that 2 and 4, of two ranges, come on one page
    home.put(Delta(LANE, token(2), 99))


REBUILD = "range. Nothing was written. Stop the compactor, then rebuild the lane."
HARMS: dict[str, tuple[Callable[[Region], None], list[list[str]]]] = {
    "total": (lambda home: home.forget_days(total={"N": "7"}), [["checkpoint's total is 7"]]),
    "count": (lambda home: home.forget_days(count={"N": "9"}), [["checkpoint's count is 9"]]),
    "days": (
        lambda home: home.alter(
            CHECKPOINT, days={"B": Days((Bucket(0, 2, 260), Bucket(1, 1, 16))).data}
        ),
        [["sum from day 0 on is 2 of 260, its segments give 3 of 276"]],
    ),
    "watermark below": (_watermark(3), [[f"checkpoint's watermark is {token(3)}"]]),
    "watermark above": (_watermark(9), [[f"checkpoint's watermark is {token(9)}"]]),
    "a missing segment": (
        lambda home: home.drop(items.segment_key(LANE, token(2), 1)),
        [["total"], ["count"], ["sum from day 0 on"]],
    ),
    "a token in two segments": (
        _lists(4),
        [
            [
                (
                    f"{token(4)}#0000000003' overlaps 'segment#{token(4)}#0000000002': it lists a "
                    "delta twice"
                ),
                REBUILD,
            ]
        ],
    ),
    "a token in the second of three segments of a range": (
        _lists_two,
        [[f"{token(4)}#0000000003' overlaps 'segment#{token(4)}#0000000002'", REBUILD]],
    ),
    "a token below its range": (_lists(1), [["outside its range"]]),
    "a token at the end of the range below": (_lists(2), [["outside its range"]]),
    "another change": (_another_change, [[token(2), "99", str(4**2)]]),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_does_not_agree_is_told(harm: str) -> None:
    home, away = lane()
    does, says = HARMS[harm]
    does(home)
    verification = compactor(home, away).verify(COUNTER)
    assert not verification.ok
    assert (verification.value is None) == ("token" in harm)  # nobody guesses
    assert len(verification.differences) == len(says)
    for difference, parts in zip(verification.differences, says, strict=True):
        assert all(part in difference for part in parts), difference
    assert not any(
        isinstance(request, Put | Transact | DeleteMany) for request in (*home.asked, *away.asked)
    )


def test_a_segment_that_came_meanwhile_is_no_difference() -> None:
    home, away = lane()
    home.put(delta(0))

    def compacts(_: object, answer: object) -> object:
        compactor(home, away).compact(COUNTER)  # folds 5 and settles 0, right after begin
        return answer

    home.after(
        lambda request: request == Get(items.segment_key(LANE, token(2), 3)), compacts, times=1
    )
    check = home.run(verify(LANE))
    assert check.value is not None
    assert items.segment_key(LANE, token(5), 4) in home.items
    assert (summed(check.value), check.differences) == ({0, 1, 2, 4, 5}, ())


def test_a_verify_takes_no_longer_than_a_read_may() -> None:
    assert Region().takes(READ_MS, Get).run(verify(LANE)) == LaneCheck(LANE, 0, 0, 0, ())
    with pytest.raises(ReadTooSlow):
        Region().takes(READ_MS + 1, Get).run(verify(LANE))
