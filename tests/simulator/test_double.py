"""The test double behaves as a table does, so that users can try their own code on it."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from compactor import Compactor, Report
from ledger import Change, Ledger, Limit, Receipt, Settings
from ledger.core.errors import InvalidTime, LedgerError, OutcomeUnknown, OutOfReach
from reader import Reader
from simulator import Drawn, Faults, Simulation

EU, US = "eu-west-1", "us-east-1"
START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
T = TypeVar("T")
FAULTS = Faults(
    throttled=100,
    dropped=100,
    lost=100,
    late=100,
    unreadable=50,
    lag_steps=20,
    slow_replication=True,
)


def settings(region: str = EU, **more: Any) -> Settings:
    return Settings(table="counters", region=region, regions=(EU, US), fold_min=1, **more)


def ledger_of(simulation: Simulation, region: str = EU, **more: Any) -> Ledger:
    return Ledger(settings(region), table=simulation.table(region), clock=simulation.clock, **more)


def reader_of(simulation: Simulation, region: str = EU, **more: Any) -> Reader:
    return Reader(settings(region, **more), table=simulation.table(region), clock=simulation.clock)


def compactor_of(simulation: Simulation) -> Compactor:
    tables = {region: simulation.table(region) for region in (EU, US)}
    return Compactor(settings(), tables=tables, clock=simulation.clock)


def test_a_region_cut_off_is_out_of_reach_until_joined() -> None:
    for given in ("table", "tables"):
        simulation = Simulation((EU, US))
        tables = {region: simulation.table(region) for region in (EU, US)}
        table: dict[str, Any] = {"tables": tables} if given == "tables" else {"table": tables[US]}
        limits = {"seats:": Limit(ceiling=10, region=EU)}
        ledger = Ledger(settings(US, limits=limits), clock=simulation.clock, **table)
        keyed: dict[str, Any] = {"idempotency_key": "1", "at": simulation.now()}
        simulation.cut_off(EU)
        with pytest.raises(OutOfReach):
            ledger.add("seats:gig", 4, **keyed)
        simulation.join(EU)
        assert ledger.add("seats:gig", 4, **keyed).outcome == "recorded"
        simulation.come_to_rest()
        assert reader_of(simulation, EU, limits=limits).read("seats:gig").value == 4


def test_the_answer_of_the_next_write_is_lost_and_of_no_other() -> None:
    simulation = Simulation((EU, US))
    ledger, reader = ledger_of(simulation), reader_of(simulation)
    ledger.add("c", 1)
    simulation.lose_next_answer()
    assert reader.read("c").value == 1
    with pytest.raises(OutcomeUnknown) as lost:
        ledger.add("c", 5)
    assert lost.value.delta is not None
    assert reader.read("c").value == 6
    assert ledger.apply(lost.value.delta).outcome == "replayed"
    simulation.lose_next_answer()
    batch = ledger.add_many([Change("c", 1, str(n), simulation.now()) for n in range(3)])
    assert {type(outcome) for outcome in batch} == {OutcomeUnknown}
    assert reader.read("c").value == 9


def test_a_simulation_refuses_faults_it_cannot_play() -> None:
    ledger = ledger_of(Simulation((EU, US)))
    assert ledger.add("c", 1, idempotency_key="k", at=datetime.now(UTC)).outcome == "recorded"
    assert Simulation((EU, US), start=START).now() == START
    with pytest.raises(InvalidTime, match="start="):
        Simulation((EU, US), start=START.replace(tzinfo=None))
    for fault in ("crash", "pause", "skew_ms", "frozen", "slow_reads", "slow_visits", "remade"):
        with pytest.raises(ValueError, match=f"no {fault}"):
            Simulation((EU, US), faults=Faults(**{fault: True}))


def until_it_works(call: Callable[[], T]) -> T:
    for _ in range(1_000):  # a clean of many requests, of which each may fail, seldom ends well
        try:
            return call()
        except LedgerError:
            continue
    raise AssertionError("it never worked")


def played(seed: int) -> tuple[int, str, str]:
    """Changes or packs under faults, compacted by `run` after each batch: the steps, the outcomes
    and the reports.

    Each batch goes to the other Region than the one before, and what it left comes again in other
    company.
    """
    simulation = Simulation((EU, US), seed=seed, faults=FAULTS, start=START)
    ledgers = [ledger_of(simulation, region, entropy=bytes) for region in (EU, US)]
    compactor = compactor_of(simulation)
    names = [f"c{n}" for n in range(4)]
    left = [Change(names[n % 4], 1, str(n), START - timedelta(seconds=200), EU) for n in range(80)]
    outcomes, reports = list[object](), list[Report]()
    while left:
        batch = left[len(reports) % 7 :: 3][:12] or left
        came = ledgers[len(reports) % 2].add_many(batch, pack=seed % 2 == 1)
        done = {
            change for change, each in zip(batch, came, strict=True) if isinstance(each, Receipt)
        }
        left = [change for change in left if change not in done]
        outcomes += came
        reports.append(until_it_works(compactor.run))
    # later, cleans are paced by this machine's clock
    history = simulation.world.step, str(outcomes), str(reports)
    meanwhile = Report.total(reports)
    assert meanwhile.folded + meanwhile.settled > 30
    for _ in range(4):
        simulation.wait(700_000)
        simulation.come_to_rest()
        for counter in names:
            until_it_works(partial(compactor.compact, counter))
    simulation.come_to_rest()
    for reader in (reader_of(simulation, EU), reader_of(simulation, US)):
        assert [until_it_works(partial(reader.read, counter)).value for counter in names] == [
            20
        ] * 4
    assert sum(isinstance(each, LedgerError) for each in outcomes) > 10
    return history


def test_a_repeated_change_counts_once_and_a_seed_is_a_history() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads switch often
    try:
        for seed in range(3):
            assert played(seed) == played(seed)
    finally:
        sys.setswitchinterval(before)


def test_threads_of_your_own_lose_and_break_nothing() -> None:
    """In which order they come is theirs, so such a test is no longer the same for every run of
    a seed.
    """

    class Hesitant(Drawn):
        def pick(self, options: int) -> int:
            time.sleep(0)  # in the middle of a step: another thread's turn
            return super().pick(options)

    simulation = Simulation((EU, US), faults=Faults(slow_landing=True))
    simulation.world.choices = Hesitant(0)
    ledger, compactor = ledger_of(simulation), compactor_of(simulation)

    def work(thread: int) -> None:
        for change in range(40):
            ledger.add(f"c{change % 4}", 1)
            if change % 10 == thread:
                until_it_works(partial(compactor.compact, f"c{thread % 4}"))
            simulation.wait(10)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    simulation.come_to_rest()
    reader = reader_of(simulation, US)
    assert [reader.read(f"c{n}").value for n in range(4)] == [80] * 4
