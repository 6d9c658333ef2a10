"""The flash sale of the demo, and that it would see an oversold seat, an empty one and a wrong refusal."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from lab.demo import sale
from lab.demo.sale import BUYERS, HOME, SEATS, Sold, buyers_of, flash_sale
from lab.demo.sale_screen import told
from ledger import Limit
from ledger.gate import decide
from ledger.requests import Program
from simulator import Simulation


def said(results: Sequence[Sold]) -> tuple[bool, str]:
    console = Console(file=io.StringIO(), width=80)
    right = told(console, results)
    return right, console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ours_sells_every_seat_and_no_more_and_the_others_do_not(seed: int) -> None:
    ours, conditional, shares = flash_sale(seed)
    assert (ours.sold, ours.refused, ours.wrongly_refused) == (SEATS, BUYERS - SEATS, 0)
    assert ours.asked_again > 50
    assert conditional.oversold > 0
    assert (shares.empty > 0, shares.wrongly_refused > 0) == (True, True)
    right, text = said([ours, conditional, shares])
    assert right
    assert f"{conditional.oversold:,}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_sale_is_the_same_from_the_same_seed() -> None:
    assert sale._sale(sale.DESIGNS[0], 5) == sale._sale(sale.DESIGNS[0], 5)
    assert buyers_of(5, 0) == buyers_of(5, 0) != buyers_of(6, 0)


def test_a_limit_that_is_too_wide_is_seen_as_oversold() -> None:
    wide = sale._sale(lambda simulation: sale.Limited(simulation, Limit(ceiling=SEATS + 1, region=HOME)), 1)
    assert (wide.oversold, wide.is_right) == (1, False)
    assert "Our sale is wrong" in said([wide, wide, wide])[1]


def test_a_refusal_before_all_were_asked_is_seen_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def obtain(*_: object) -> Program[bool]:
        yield from ()
        return False

    monkeypatch.setattr(decide, "obtain", obtain)
    alone = sale._sale(sale.DESIGNS[0], 1)
    assert (alone.wrongly_refused > 0, alone.is_right) == (True, False)


def test_a_retry_that_counts_again_is_seen_as_empty_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    sell = sale.Limited.sell
    calls = iter(range(10**6))

    def again(self: sale.Limited, region: str, buyer: sale.Buyer) -> bool:
        return sell(self, region, sale.Buyer(next(calls), buyer.home, buyer.at_ms))

    monkeypatch.setattr(sale.Limited, "sell", again)
    twice = sale._sale(sale.DESIGNS[0], 1)
    assert (twice.empty > 0, twice.is_right) == (True, False)


def test_a_sale_in_which_another_design_is_right_shows_too_little() -> None:
    right = Sold("x", SEATS, BUYERS - SEATS, 0, 0)
    assert "shows too little" in said([right, right, right])[1]
    assert not said([right, right, right])[0]


def test_who_asks_again_meets_the_simulated_cut() -> None:
    simulation = Simulation(sale.REGIONS, seed=1)
    sale._cut(simulation, sale.CUT_FROM_MS)
    assert simulation.world.cut == {sale.AWAY}
    sale._cut(simulation, sale.CUT_UPTO_MS)
    assert not simulation.world.cut
