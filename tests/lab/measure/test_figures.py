"""The figures of `make bench` and the rows of `make compare`: by hand; and both can go red."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.designs import Outcome, every
from lab.designs.atomic import Atomic
from lab.designs.trial import DESIGNS
from lab.measure import bench, instructions, starts
from lab.measure.changes import BASE, EVENTS, SLOTS, Counted, Record
from lab.measure.compare import FOLDED, publish
from lab.measure.cost import Pace, Spent, on_one_counter, shop_events, spend
from lab.measure.figure import Figure, Part
from lab.measure.goals import goal
from lab.measure.metered_table import Charge
from lab.measure.one_counter import ONE, SCENARIOS, count
from lab.measure.page import GROUPS, Row
from lab.measure.rivals import HARM, TAKEN, Rival
from lab.measure.ways import PLAIN
from ledger.core.requests import Program

FAULTS = {scenario.name: scenario for scenario in SCENARIOS}
ON_WORLD = {design.name: design for design in every(FOLDED)}


def test_a_missed_goal_or_a_failed_part_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rival(_: bool) -> Iterator[Figure]:
        yield Figure("before", 1.0, 1.0, 0.5)
        raise ConnectionError("has gone")

    written = tmp_path / "bench.txt"
    monkeypatch.setattr(bench, "WRITTEN", written)
    monkeypatch.setattr(bench, "COUNTED", ())
    monkeypatch.setattr(bench, "TIMED", ())
    monkeypatch.setattr(instructions, "installed", lambda: True)
    runs: list[tuple[list[Part], int]] = [
        ([part(1.0, 1.0, 0.5)], 0),
        ([part(1.1, 1.0, 0.5)], 1),
        ([part(0.4, 1.0, 0.5)], 1),
        ([part(1.1, 1.0, 0.5, judged=False)], 0),
        ([part(4.9, None, 5)], 1),
        ([rival, part(1.0, 1.0, 0.5)], 1),
    ]
    for parts, code in runs:
        monkeypatch.setattr(bench, "ROOMS", [SimpleNamespace(PARTS=parts)])
        with pytest.raises(SystemExit) as ended:
            bench.main(small=False)
        printed = capsys.readouterr().out
        assert ended.value.code == code, printed
        assert ("FAILED" in printed) == (rival in parts)
        assert rival in parts or written.read_text() == f"$ make bench\n{printed}"
        assert ("MISSED" in printed) == ("1.1" in printed or "0.4" in printed or "4.9" in printed)
    assert [line.split()[0] for line in printed.splitlines()] == [
        "before",
        f"{__name__}.rival",
        "one",
    ]
    with pytest.raises(ValueError, match="did nothing would pass"):
        Figure("no floor", 0.0, 1.0, 0)


def part(
    value: float, most: float | None, least: float, judged: bool = True, why: str = ""
) -> Part:
    return lambda _: iter([Figure("one", value, most, least, judged, why)])


def test_a_reason_excuses_a_missed_goal_but_no_idle_run() -> None:
    known = Figure("one", 1.1, 1.0, 0.5, why="it is known")
    assert (known.is_wrong, str(known).splitlines()[1]) == (False, "  because it is known")
    assert "because" not in str(replace(known, value=1.0))
    assert replace(known, value=0.4).is_wrong
    assert not Figure("one", 1.1, 1.0, 0.5, judged=False).is_wrong


def test_without_valgrind_the_bench_says_what_it_did_not_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instructions, "installed", lambda: False)
    for rooms in ("ROOMS", "COUNTED", "TIMED"):
        monkeypatch.setattr(bench, rooms, [SimpleNamespace(PARTS=[part(1.0, 1.0, 0.5)])])
    one, not_judged, other = bench.measured(small=False)
    assert str(not_judged).startswith("NOT JUDGED: the instructions of starts and calls")
    assert one == other


@pytest.mark.skipif(not instructions.installed(), reason="valgrind is not on PATH")
def test_a_start_that_does_nothing_misses_its_goal() -> None:
    """Instructions are the same each time; a program that is not right is no figure."""
    counts = [instructions.counted('mark("one"); [*range(10**6)]; mark("two")') for _ in "12"]
    assert counts[0] == counts[1]
    took = instructions.between(counts[0])["two"]
    assert 10**6 < took < 10**9
    name = "start of ring to its first answer / boto3 with a client: instructions"
    assert goal(name, 0.05).is_wrong
    with pytest.raises(AssertionError, match="did not do what is measured"):
        instructions.counted("print('answer null')", is_right=lambda printed: "3" in printed)
    first = starts.firsts()["canary"]
    assert first.is_right({"read": True})
    assert not first.is_right({"read": False})


@dataclass(frozen=True, kw_only=True)
class Planted(Atomic):
    """Makes changes so often, in turn; reads so much too much."""

    times: tuple[int, ...] = (1,)
    more: int = 0

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        for _ in range(self.times[int(key.partition("-")[2] or 0) % len(self.times)]):
            yield from Atomic.add(self, counter, change, key, at_ms)
        return "recorded"

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        return self.more + (yield from Atomic.value(self, counter, consistent=consistent))


def test_a_dropped_or_repeated_change_is_seen() -> None:
    assert count(Planted(), ONE, 0) == Counted(EVENTS, reads=18)
    none, both = count(Planted(times=(0,)), ONE, 0), count(Planted(times=(0, 2)), ONE, 0)
    assert (none.lost, none.missed > 0) == (EVENTS, True)
    assert (both.lost, both.doubled) == (EVENTS / 2, EVENTS / 2)  # they do not hide each other
    assert count(Planted(more=1), ONE, 0).false > 0
    record = Record(units=False)
    for number in range(SLOTS + 3):
        record.asked.add(number)
        record.answered(number, "us")
    right = sum(map(record.change, record.asked))
    assert record.ended([right, right + 6 * BASE**4]).doubled == 6  # the worst Region counts
    assert record.ended([right - 4 * BASE ** (SLOTS - 1)]).lost == 4
    record.asked.add(30)  # not answered: neither lost nor doubled
    assert [record.ended([right + more]).gave_up for more in (0, BASE ** (SLOTS - 1))] == [1, 1]
    assert record.ended([right + BASE ** (SLOTS - 1)]).doubled == 0


RIGHT = Counted(EVENTS, reads=18)
WRONG = [
    replace(RIGHT, **wrong) for wrong in ({"lost": 1}, {"doubled": 1}, {"gave_up": 1}, {"reads": 0})
]
WRONG += [replace(RIGHT, false=1), replace(RIGHT, missed=1), Counted()]
UNITS = Spent(10, Charge(), Charge(), (Charge(), Charge()), 0, 0)


FACTS = {"date": "today", "engine": "it", "events": "some"}


RIVALS: list[tuple[str, dict[str, float]]] = [
    ("a rival", {"requests": 0}),
    ("this library", {"lose": 2}),
    ("this library", {}),
]


def found(name: str, **kinds: float) -> Rival:
    return Rival(name, dict.fromkeys((*TAKEN, *HARM), 1.0) | kinds)


def row_of(name: str, crash: Counted = RIGHT, made: int = 1) -> Row:
    found = dict.fromkeys(FAULTS, RIGHT) | {"crash": crash}
    return Row(ON_WORLD[name], found, UNITS, UNITS, [Pace(1.0, made, 0)] * 2)


def test_a_wrong_row_ends_with_1_and_leaves_the_page(
    tmp_path: Path,
) -> None:
    path = tmp_path / "comparison.md"
    path.write_text("as it was")
    wrong = [
        row_of(name, crash=crash)
        for crash in WRONG
        for name in ON_WORLD
        if name.startswith("this library")
    ]
    right, died = row_of("this library"), Rival("pynamodb", failure="FAILED: gone")
    idle, twice, once = (found(name, **kinds) for name, kinds in RIVALS)
    runs = [*(([row], [once]) for row in [*wrong, row_of("this library", made=0)])]
    runs += [
        ([right], [rival])
        for rival in (idle, twice, replace(died, name="this library"), replace(once, name=PLAIN))
    ]
    for rows, rivals in runs:
        with pytest.raises(SystemExit) as ended:
            publish(rows, rivals, path, 1, **FACTS)
        assert (ended.value.code, path.read_text()) == (1, "as it was"), (rows, rivals)
    longer = replace(UNITS, reads=(Charge(1, 1, 0), Charge(1, 2, 0)))
    doubles = replace(row_of("atomic ADD", crash=replace(RIGHT, doubled=3)), one=longer)
    publish([right, doubles], [once, died, replace(twice, name="a rival")], path, 1, **FACTS)
    assert "counts once | one Region: doubled of " in path.read_text()
    assert "| this library | for ever | 0 | no |" in path.read_text()
    assert "| atomic ADD | no | 3 | in one Region | 0.00 | 2, grows |" in path.read_text()
    assert "| a rival | 1.00 | 1.00 | 1.00 | 1 | 2 | 1 |" in path.read_text()
    assert "| pynamodb | failed | failed | failed |" in path.read_text()
    assert "be listed in this library." in path.with_suffix(".txt").read_text()
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(FAULTS)


SPENT: dict[str, tuple[int, Charge, float]] = {
    # changes; their second half; the write units of its housekeeping
    "atomic ADD": (8, Charge(4, 0, 4), 0),
    "transaction, client token": (8, Charge(4, 0, 8), 0),
    "transaction, marker with TTL": (8, Charge(4, 0, 16), 0),
    "Powertools idempotency round an ADD": (8, Charge(12, 0, 12), 0),
    "item collection, naive merge": (8, Charge(4, 0, 4), 2 * 4 + 2),
    "gap-free ids": (8, Charge(8, 4, 16), 0),
    "hybrid, best effort and stream": (8, Charge(8, 0, 8), 4 * 4),
    "this library": (70, Charge(35, 0, 35), 2 + 2 + 35 + 1),
    "this library, packs": (76, Charge(1, 0, 1), 2 + 2 + 1 + 1),  # 38 in a KB
    "this library, a limit": (8, Charge(4, 0, 4), 0),
}


def test_a_designs_spending_is_what_its_items_cost() -> None:
    designs = {design.name: design for design in DESIGNS}
    events = on_one_counter(shop_events(count=100))
    for name, (changes, change, housekeeping) in SPENT.items():
        found = spend(events[:changes], designs[name])
        assert found.change == change, name
        assert found.housekeeping.write_units == housekeeping, name
    # of 36 bytes, 51 to 100 of them, and 30 of names and the key
    grown = spend(events, designs["set of ids"])
    assert (grown.grows, grown.change.write_units) == (
        True,
        sum(-(-(30 + 36 * ids) // 1_024) for ids in range(51, 101)),
    )
    with pytest.raises(AssertionError, match="atomic ADD: stock:all reads"):
        spend(events[:4], Planted(more=1))
