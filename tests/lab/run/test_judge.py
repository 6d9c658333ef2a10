"""The judgement of a recorded history, on histories written by hand; of a sale; and what a run
must have done.
"""

from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from lab.events import Event, is_witness, shop_day, truth_of, with_witnesses
from lab.run import __main__ as program
from lab.run import judge
from lab.run.plan import GENTLE, LATENESS_MS, ROUGH, Plan, numbered
from lab.run.record import Line, Recorder, histories_of, lines_of
from lab.run.round import Outcome
from lab.run.sale import BUYERS, SEATS, Sold, flash_sale, limited, sale
from lab.run.screen import closing, print_sale, sale_verdict, wrong_values
from tests.world import A, B

LATE_NS = LATENESS_MS * 1_000_000
HOMES = [A, A, A, B]
PLAN = Plan(ROUGH, 1, numbered(100), "", wall_ns=0)


def invoke(time: int, *numbers: int, region: str = A) -> Line:
    value = [[number, HOMES[number], 0] for number in numbers]
    return {
        "process": "w",
        "type": "invoke",
        "f": "add",
        "time": time,
        "value": value,
        "region": region,
    }


def end(time: int, *numbers: int, how: str = "ok", region: str = A) -> Line:
    value = [[number, how] for number in numbers]
    return {"process": "w", "type": how, "f": "add", "time": time, "value": value, "region": region}


def read(
    began: int,
    ended: int,
    *numbers: int,
    region: str = A,
    strong: bool = True,
    more: int = 0,
    count: int | None = None,
) -> Line:
    total = sum(4**number for number in numbers) + more
    value = [["witness:0", total, len(numbers) if count is None else count]]
    about = {"region": region, "strong": strong, "began": began}
    return {"process": "r", "type": "ok", "f": "read", "time": ended, "value": value, **about}


def judged(*lines: Line) -> list[str]:
    ordered = sorted(lines, key=lambda line: int(line["time"]))
    return [str(wrong) for wrong in judge.check(ordered, histories_of(ordered, PLAN))]


def at_the_end(values: dict[str, Sequence[int]], *lines: Line) -> list[str]:
    [history] = histories_of(lines, PLAN).values()
    sums = {region: sum(4**number for number in numbers) for region, numbers in values.items()}
    return [str(wrong) for wrong in judge.check_end(history, sums, {})]


ADDED = (invoke(10, 0, 1), end(20, 0, 1))
RIGHT: dict[str, Sequence[Line]] = {
    "everything that was acknowledged": [*ADDED, read(30, 40, 0, 1)],
    "without what was not acknowledged when it began": [*ADDED, read(15, 40)],
    "an eventual read, a read abroad": [*ADDED, read(30, 40, strong=False), read(30, 41, region=B)],
    "acknowledged abroad: not owed": [invoke(10, 0, region=B), end(20, 0, region=B), read(30, 40)],
    "late: not owed": [invoke(10, 0), end(LATE_NS + 1, 0), read(LATE_NS + 2, LATE_NS + 3)],
    "all its adds failed: not there": [invoke(10, 0), end(20, 0, how="fail"), read(30, 40)],
    "its writer was killed: there or not": [invoke(10, 0), read(30, 40, 0), read(41, 42)],
    "deltas of both Regions": [invoke(10, 0, 3), end(20, 0, 3), read(30, 40, 0, 3)],
}
LACKS = (
    "witness:0: a strong read in eu-west-1 of 1 lacks [1], acknowledged at home on time "
    "before it began; r, from"
)
WRONG = [
    ([*ADDED, read(30, 40, 0)], LACKS),
    (
        [*ADDED, read(30, 40, 0, 1, more=4)],
        "witness:0: a strong read in eu-west-1 of 9 counts a delta twice",
    ),
    ([*ADDED, read(30, 40, 0, 1, 2), invoke(50, 2)], "counts [2], which nobody has asked for"),
    (
        [invoke(10, 0), end(20, 0, how="fail"), read(30, 40, 0)],
        "counts [0], which nobody has asked for",
    ),
    ([*ADDED, read(30, 40, 0, 1, count=1)], "says it counts 1 deltas"),
    (
        [{**invoke(1), "type": "broken", "error": "TokenConflict: no"}],
        "w, add []: TokenConflict: no",
    ),
]


def test_what_may_be_is_right_and_what_may_not_is_said() -> None:
    assert {name: wrong for name, lines in RIGHT.items() if (wrong := judged(*lines))} == {}
    for lines, why in WRONG:
        assert why in judged(*lines)[0]


def test_an_acknowledged_delta_counts_in_both_regions() -> None:
    refused, killed = (invoke(10, 0), end(20, 0, how="fail")), invoke(10, 0)
    assert at_the_end({A: [0, 1], B: [0, 1]}, *ADDED) == at_the_end({A: [], B: []}, *refused) == []
    assert at_the_end({A: [0], B: [0]}, killed) == at_the_end({A: [], B: []}, killed) == []
    assert "counts [0], which nobody asked for" in at_the_end({A: [0], B: [0]}, *refused)[0]
    late = (invoke(10, 0, 1), end(20, 0), end(LATE_NS + 1, 1))
    assert "lacks [1], which were acknowledged" in at_the_end({A: [0], B: [0]}, *late)[0]
    assert at_the_end({A: [0, 1], B: [0]}, *ADDED) == [
        "witness:0: at the end us-east-1 lacks [1], which were acknowledged",
        "witness:0: at the end the Regions differ: {'eu-west-1': 5, 'us-east-1': 1}",
    ]


def test_a_users_counters_are_held_against_the_truth() -> None:
    outcome = Outcome(values={A: {"stock": 5}, B: {"stock": 6}})
    assert wrong_values(outcome, {"stock": 5}) == [
        "at the end us-east-1 reads 6 of stock, which is 5"
    ]
    at = shop_day(1, 1)[0].at
    plan = Plan(GENTLE, 1, (Event("stock", -3, "k", at), Event("witness:01", 4**5, "k", at)), "")
    histories = histories_of([invoke(10, 0, 1)], plan)
    assert {name: is_witness(name) for name in histories} == {"stock": False, "witness:01": True}
    assert [change.delta for change in histories["witness:01"].changes.values()] == [5]
    # a row that is there twice counts once
    truth = truth_of([*with_witnesses(shop_day(1, 10), 1)] * 2)
    assert {value for counter, value in truth.items() if is_witness(counter)} == {(4**28 - 1) // 3}


def test_a_line_torn_by_a_kill_is_left_out(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.jsonl") as recorder:
        recorder.write("w", "invoke", "add", [1])
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"process": "w"')
    assert [line["value"] for line in lines_of(tmp_path / "a.jsonl")] == [[1]]


def test_a_run_that_did_too_little_lacks_it_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = Outcome(
        operations=Counter({"add ok": 1_600, "add fail": 10, "read ok": 400}),
        faults=Counter({"requests": 6_000, "conflict": 800}),
        events=Counter(
            {"changes acknowledged": 1_500, "of them owed to strong reads": 700, "cleaned": 30}
        ),
    )
    assert done.lacks(ROUGH, 2_000) == []
    refused = Outcome(operations=Counter({"add fail": 2_000}), faults=done.faults)
    lacking = ["changes acknowledged", "of them owed to strong reads", "cleaned", "read ok"]
    assert [line.split(":")[0] for line in refused.lacks(ROUGH, 2_000)] == lacking
    assert {line.split(":")[0] for line in done.lacks(GENTLE, 1_500)} == {
        "packed",
        "folded",
        "settled",
    }
    monkeypatch.setattr(program, "play", lambda *_: Outcome())
    monkeypatch.setattr(program, "_begin", lambda _: Console())
    with pytest.raises(typer.Exit) as ended:
        program.torture(operations=2_000, seed=1)
    assert ended.value.exit_code == 1


def test_ours_sells_every_seat_and_no_more() -> None:
    ours, conditional, shares = flash_sale(1)
    assert (ours.sold, ours.refused, ours.wrongly_refused) == (SEATS, BUYERS - SEATS, 0)
    assert (conditional.oversold > 0, shares.empty > 0, shares.wrongly_refused > 0) == (
        True,
        True,
        True,
    )
    wide = sale(lambda simulation: limited(simulation, SEATS + 1), 1)
    assert (wide.oversold, wide.is_right) == (1, False)
    results: list[tuple[list[Sold], bool]] = [
        ([ours, conditional, shares], True),
        ([ours, ours], False),
    ]
    for sold, is_right in [*results, ([wide, conditional], False)]:
        assert sale_verdict(sold)[0] == is_right
    outcome = Outcome(faults=Counter({"requests": 1}), values={A: {"stock": 5}})
    for held, truth, marks in (
        ([ours, shares], 5, "✓✓"),
        ([ours, ours], 5, "✗✓"),
        ([ours, shares], 6, "✓✗-"),
    ):
        console = Console(record=True, soft_wrap=True, file=StringIO())
        print_sale(console, held)
        assert closing(console, held, outcome, {"stock": truth}, [], []) == (marks == "✓✓")
        lines = console.export_text().splitlines()
        assert "".join(line[0] for line in lines[-len(marks) :]) == marks
        assert max(map(len, lines)) <= 80
