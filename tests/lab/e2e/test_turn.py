"""A month that turns: which one it is, when it closes, which answers about that instant are wrong,
and when its items retire.
"""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from lab.e2e.deployed import CALLS, QUOTA, REGIONS, NotDeployed
from lab.e2e.turn import (
    CLOSES_S,
    COUNTED,
    HTTP,
    QUEUE,
    REFUSED,
    WAYS,
    Attempt,
    Turn,
    kept,
    kind_of,
    next_turn,
    retires,
    wrong_answers,
)
from ledger.core.keep import Keep, term_of
from ledger.core.values import Change

TURN = Turn(0, datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 26, 12, tzinfo=UTC))
CLOSES_MS = int(TURN.closes.timestamp() * 1_000)
OVER, OPENED = (f"{TURN.base(CALLS, 'c')}@{month}" for month in (TURN.over, TURN.opened))


def attempt(key: str, answer: str, from_ms: int, to_ms: int, **said: str) -> Attempt:
    """Times are of the instant at which the older month closes."""
    change = Change(said.get("counter", OVER), 1, key, TURN.at)
    way, region = said.get("way", HTTP), said.get("region", REGIONS[0])
    times = CLOSES_MS + from_ms, CLOSES_MS + to_ms
    return Attempt(change, way, region, *times, frozenset({answer} if answer else ()))


@pytest.mark.parametrize(
    ("now", "over"),
    [
        (datetime(2026, 11, 26, 19, tzinfo=UTC), "2026-10"),
        (datetime(2026, 11, 1, 12, tzinfo=UTC), "2026-10"),
        (datetime(2026, 11, 1, 11, 59, tzinfo=UTC), "2026-09"),  # October is not over in every zone
        (datetime(2027, 1, 9, tzinfo=UTC), "2026-12"),
    ],
)
def test_the_month_that_closes_is_over_in_every_zone(now: datetime, over: str) -> None:
    for passed_s, number in ((0, 0), (CLOSES_S[1] - 100, 1), (CLOSES_S[2] - 44, 3)):
        turn = next_turn(now, now + timedelta(seconds=passed_s))
        assert (turn.number, turn.over) == (number, over)
        keep = kept(now)[f"{QUOTA}{number}:"]
        late = Keep(late=timedelta(seconds=keep["late_s"]), keep=timedelta(seconds=keep["keep_s"]))
        term = term_of(f"{turn.base(QUOTA, 'q')}@{over}", late)
        assert term is not None
        assert term.closes_ms == int(turn.closes.timestamp() * 1_000)
        assert turn.closes == now + timedelta(seconds=CLOSES_S[number])
    with pytest.raises(NotDeployed):
        next_turn(now, now + timedelta(seconds=CLOSES_S[-1]))


def test_answers_about_the_instant() -> None:
    """One on the wrong side is wrong, and so is a run that shows no side."""
    sent = [
        attempt(f"{answer}/{way}/{region}", answer, ms, ms + 10, way=way, region=region)
        for answer, ms in ((COUNTED, -90), (REFUSED, 5))
        for way, region in product(WAYS, REGIONS)
    ]
    outcomes = {each.key: {REFUSED} for each in sent if each.way == QUEUE and ms_after(each) > 0}
    right = [each.answered(outcomes) for each in sent]
    assert [each.answers for each in right] == [each.answers for each in sent]
    assert list(wrong_answers(right, TURN)) == []
    quota = f"{TURN.base(QUOTA, 'q')}@{TURN.over}"
    for wrong in (
        attempt("late", COUNTED, 0, 5),
        attempt("early", REFUSED, -9, -1),
        attempt("of the newer month", REFUSED, -9, 9, counter=OPENED),
        attempt("failed", "503", -9, 9),
        attempt("late in the queue", "", 0, 1, way=QUEUE),
        attempt("without an outcome", "", -9, -8, way=QUEUE, counter=quota),
    ):
        assert len(list(wrong_answers([*right, wrong.answered({})], TURN))) == 1, wrong.key
    for between in (attempt("across", COUNTED, -9, 9), attempt("over", REFUSED, -9, 9)):
        assert list(wrong_answers([*right, between], TURN)) == []
    for less in range(len(right)):
        assert len(list(wrong_answers(right[:less] + right[less + 1 :], TURN))) == 1


def ms_after(sent: Attempt) -> int:
    return sent.began_ms - CLOSES_MS


def test_when_an_item_of_a_month_retires() -> None:
    """As the ledger has it; an item of no month does not."""
    now = TURN.at + timedelta(days=26)
    keeps = kept(now)
    keep = keeps[f"{QUOTA}0:"]
    of_a_prefix = Keep(
        late=timedelta(seconds=keep["late_s"]), keep=timedelta(seconds=keep["keep_s"])
    )
    for month in (TURN.over, TURN.opened):
        counter = f"{TURN.base(QUOTA, 'q')}@{month}"
        term = term_of(counter, of_a_prefix)
        assert term is not None
        for pk, sk, kind in (
            (f"delta#eu-west-1#0#{counter}", "1", "delta"),
            (f"delta#eu-west-1#0#{counter}", "1#2", "pack"),
            (f"fold#eu-west-1#0#{counter}", "checkpoint", "checkpoint"),
            (f"fold#eu-west-1#0#{counter}", "segment#1", "segment"),
            ("lane#eu-west-1#95", f"0#{counter}", "lane"),
        ):
            assert retires(pk, sk, keeps, TURN) == term.retires_s
            assert kind_of(pk, sk) == kind
    assert retires("delta#eu-west-1#0#stock:1", "1", keeps, TURN) is None
