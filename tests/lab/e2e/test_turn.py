"""A month that turns: which one it is, when it closes, and which answers about that instant are
wrong.
"""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from lab.e2e.deployed import CALLS, QUOTA, REGIONS, NotDeployed
from lab.e2e.turn import (
    CLOSES_S,
    COUNTED,
    QUEUED,
    REFUSED,
    WAYS,
    Asked,
    Turn,
    counted,
    kept,
    next_turn,
    wrong_answers,
)
from ledger.core.keep import Keep, term_of
from ledger.core.values import Change

TURN = Turn(0, datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 26, 12, tzinfo=UTC))
CLOSES_MS = int(TURN.closes.timestamp() * 1_000)
OVER, OPENED = (f"{TURN.base(CALLS, 'c')}@{month}" for month in (TURN.over, TURN.opened))


def asked(key: str, answer: str, from_ms: int, to_ms: int, **said: str) -> Asked:
    """Times are of the instant at which the older month closes."""
    change = Change(said.get("counter", OVER), 1, key, TURN.at)
    where = said.get("way", "library"), said.get("region", REGIONS[0])
    return Asked(change, *where, CLOSES_MS + from_ms, CLOSES_MS + to_ms, answer)


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


def test_an_answer_on_the_wrong_side_of_the_instant_is_wrong() -> None:
    right = [
        asked(
            f"{n}/{way}/{region}",
            QUEUED if way == "queue" else answer,
            ms,
            ms + 10,
            way=way,
            region=region,
        )
        for n, (answer, ms) in enumerate(((COUNTED, -90), (REFUSED, 5)))
        for way, region in product(WAYS, REGIONS)
    ]
    right[right.index(asked("1/library/eu-west-1", REFUSED, 5, 15))] = asked(
        "0/http/eu-west-1", REFUSED, 5, 15
    )  # again
    outcomes = {
        each.key: {REFUSED} for each in right if each.way == "queue" and each.key.startswith("1")
    }
    assert list(wrong_answers(right, outcomes, TURN)) == []
    assert counted(right, outcomes) == {
        OVER: {each.key for each in right if each.key.startswith("0")}
    }
    for wrong in (
        asked("late", COUNTED, 0, 5),
        asked("early", REFUSED, -9, -1),
        asked("of the newer month", REFUSED, -9, 9, counter=OPENED),
        asked("failed", "503", -9, 9),
        asked("late in the queue", QUEUED, 0, 1, way="queue"),
        asked(
            "without an outcome",
            QUEUED,
            -9,
            -8,
            way="queue",
            counter=f"{TURN.base(QUOTA, 'q')}@{TURN.over}",
        ),
    ):
        assert len(list(wrong_answers([*right, wrong], outcomes, TURN))) == 1, wrong.key
    for between in (asked("across", COUNTED, -9, 9), asked("over", REFUSED, -9, 9)):
        assert list(wrong_answers([*right, between], outcomes, TURN)) == []
    for less in range(len(right)):
        assert len(list(wrong_answers(right[:less] + right[less + 1 :], outcomes, TURN))) >= 1
