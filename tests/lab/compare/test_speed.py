"""What is measured on the embedded engine, and ratios of slices that are made up."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.compare import speed
from lab.compare.speed import EACH, Pace, Slice, Trips, Writers, pace_of, paces, trips
from lab.designs import Outcome
from lab.designs.atomic import Atomic
from lab.designs.design import Contended
from lab.designs.trial import DESIGNS, Trial
from lab.engines.ministack import Engine
from ledger.requests import Program

BY_NAME = {design.name: design for design in DESIGNS}
TWO_REQUESTS = {
    *("optimistic, entity tag", "optimistic, on the value", "optimistic with history"),
    *("gap-free ids", "hybrid, best effort and stream"),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_round_trips_are_those_of_the_programs(engine: Engine, name: str) -> None:
    reads_a_tail = name.startswith("this library") and ", a limit" not in name
    assert trips(engine, BY_NAME[name], 2) == Trips(name, 1 + (name in TWO_REQUESTS), 1 + reads_a_tail)


@pytest.mark.parametrize(("slow", "rounds"), [(math.inf, 2), (0, 1)])
def test_what_takes_so_many_times_as_long_as_plain_add_has_one_round_of_some_changes(
    engine: Engine, slow: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "SLOW", slow)
    for pace in paces(engine, 2, 3, [BY_NAME["atomic ADD"], BY_NAME["item collection"]], rounds=2, slice_s=0.01):
        assert (pace.rounds, pace.conflicts, pace.given_up) == (rounds, 0, 0)
        assert pace.changes >= EACH * 2 * rounds


def test_every_change_of_a_slice_is_in_the_value_and_none_is_asked_for_again(engine: Engine) -> None:
    writers = Writers(Trial(engine, BY_NAME["optimistic, on the value"]))
    with ThreadPoolExecutor(4) as threads:
        made = writers.slice(threads, 4, 2, 0.05)
    value = sum(writers.trial.value(f"2-{number}") for number in range(2))
    assert value == len(made.took_s)
    assert made.sent["refused"] == made.sent["calls"] / 2 - value - made.given_up


class Busy(Atomic):
    """The item has changed at every try."""

    def add(self, counter: str, change: int, key: str, at_ms: int, shard: int = 0) -> Program[Outcome]:
        yield from ()
        raise Contended("Nothing was written.")


def test_a_change_that_fails_is_given_up_and_takes_no_time(engine: Engine) -> None:
    with ThreadPoolExecutor(2) as threads:
        made = Writers(Trial(engine, Busy())).slice(threads, 2, 1, 0)
    assert made.took_s == []
    assert made.given_up in (2, 3)


def made_up(seconds: float, *took_s: float, given_up: int = 0, **sent: int) -> Slice:
    return Slice(seconds, list(took_s), given_up, Counter(sent))


def test_a_pace_is_the_median_of_ratios_to_the_slices_around() -> None:
    plain = made_up(1, *[0.1] * 10)
    halves = [made_up(seconds, *[0.2] * 5, calls=20, attempts=25, refused=5) for seconds in (1, 1, 100)]
    assert pace_of("x", 1, 1, [(plain, half, plain) for half in halves]) == Pace(
        *("x", 1, 1, 15, 3, 0.5, 2.0, 2.0), retries=1_000, conflicts=1_000, given_up=0
    )


def test_a_machine_that_grows_faster_favours_nobody_and_what_is_given_up_is_no_change() -> None:
    slow, own, fast = made_up(1, 0.1), made_up(1, *[0.1] * 2, given_up=3), made_up(1, *[0.1] * 3)
    pace = pace_of("x", 1, 1, [(slow, own, fast)])
    assert (pace.changes, pace.rate, pace.given_up) == (2, 1, 1_500)
