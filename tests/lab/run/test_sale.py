"""The flash sale of the demo, and that it sees an oversold seat, an empty one and a wrong refusal."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from lab.run.sale import BUYERS, SEATS, Buyer, Limited, Sold, flash_sale, sale
from lab.run.screen import print_sale
from ledger.gate import decide
from ledger.requests import Program


def printed(results: Sequence[Sold]) -> tuple[bool, str]:
    file = io.StringIO()
    return print_sale(Console(file=file, width=80), results), file.getvalue()


def test_ours_sells_every_seat_and_no_more_and_the_others_do_not() -> None:
    ours, conditional, shares = flash_sale(1)
    assert (ours.sold, ours.refused, ours.wrongly_refused) == (SEATS, BUYERS - SEATS, 0)
    assert conditional.oversold > 0
    assert (shares.empty > 0, shares.wrongly_refused > 0) == (True, True)
    is_right, text = printed([ours, conditional, shares])
    assert is_right
    assert max(map(len, text.splitlines())) <= 80
    assert printed([ours, ours, ours])[0] is False
    assert "shows too little" in printed([ours, ours, ours])[1]
    assert "Our sale is wrong" in printed([conditional, ours])[1]


def test_each_mistake_of_a_limit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = sale(lambda simulation: Limited(simulation, SEATS + 1), 1)
    assert (wide.oversold, wide.is_right) == (1, False)

    def obtain(*_: object) -> Program[bool]:
        yield from ()
        return False

    with monkeypatch.context() as patch:
        patch.setattr(decide, "obtain", obtain)
        assert sale(Limited, 1).wrongly_refused > 0

    calls = iter(range(10**6))

    class Doubling(Limited):
        """A retry counts again."""

        def sell(self, region: str, buyer: Buyer) -> bool:
            return super().sell(region, Buyer(next(calls), buyer.home, buyer.at_ms))

    assert sale(Doubling, 1).empty > 0
