"""The largest Updates of a gate fit an engine, and do there what they mean; and what periods
need of a table.
"""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor import Compactor
from ledger import Change, Keep, Ledger, Settings
from ledger.core import tokens
from ledger.core.actions import updated
from ledger.core.checks import to_ms
from ledger.core.conditions import has
from ledger.core.errors import LimitReached
from ledger.core.limit import DOWN, UP, Limit
from ledger.core.requests import Get, Item, Key, KeyPage, Put, Scan, Table, Update, Written
from ledger.core.tokens import hold_token
from ledger.core.values import Lane
from ledger.gate import items, updates
from ledger.gate.filing import FILED_MAX, HOLDS_FILED_MAX
from ledger.gate.gate import EXPIRED, LOWEST, RELEASED, Gate, fingerprint
from ledger.gate.move import NOTES_OF_LATER_PAGE

LANE = Lane("eu-west-1", 0, "seats:gig")
LIMIT = Limit(floor=-1_000, ceiling=10**6, region="eu-west-1")
NOW_MS = 1_700_000_000_000


def some(number: int, what: str) -> list[str]:
    return sorted(tokens.keyed(LANE.counter, f"{what}{n}", NOW_MS + n) for n in range(number))


NEW, RECENT = some(updates.GROUP_MAX, "new"), some(FILED_MAX, "recent")
HELD = [hold_token(LANE.counter, str(n), NOW_MS, 1_000) for n in range(updates.EXPIRED_MAX)]
MOVED = frozenset(map(fingerprint, some(1_400, "moved")))
THERE: Item = {
    **items.new_gate(LANE, LIMIT),
    "recent": {"M": {token: {"N": "1"} for token in RECENT}},
    "held": {"M": {token: {"N": "-2"} for token in HELD}},
    "version": {"N": "7"},
    "moved": {"BS": sorted(MOVED)},
    "given:us-east-1#0:up": {"N": "3"},
}
GATE: Gate = items.gate_of(LANE, THERE)
ALL = dict(zip(NEW, [*range(-20, 20)], strict=True))
LARGEST: dict[str, Update] = {
    "a group": updates.decide(LANE, LIMIT, ALL),
    "a group that was looked up": updates.decide(LANE, LIMIT, ALL, seen=7, slack_ms=300),
    "a hold": updates.hold(LANE, LIMIT, NEW[0], -3),
    "a refusal": updates.refuse(LANE, LIMIT, NEW[0], -2_000),
    "a capture": updates.end(LANE, LIMIT, {HELD[0]: -2}, -1),
    "the release of a filed hold": updates.end(LANE, LIMIT, {NEW[0]: -2}, RELEASED, filed=7),
    "the end of many holds": updates.end(LANE, LIMIT, dict.fromkeys(HELD, -2)),
    "the end of a page of filed holds": updates.end(
        LANE, LIMIT, dict.fromkeys(some(NOTES_OF_LATER_PAGE, "over"), -2), filed=7
    ),
    "a gift": updates.give(GATE, ("us-east-1#0", UP), 5),
    "a take-over": updates.take_over(GATE, ("us-east-1#1", DOWN), 4),
    "another limit": updates.set_limit(GATE, LIMIT, {DOWN: -900, UP: 10**6 + 1}),
    "what a period leaves": updates.carry_out(GATE, 10**6),
    "what the next one takes": updates.carry_in(replace(GATE, took=3), 20),
    "a roll": updates.finish_roll(
        GATE, RECENT, HELD[:HOLDS_FILED_MAX], LOWEST, RECENT[-1], MOVED, 250
    ),
    "a roll of all": updates.finish_roll(
        GATE, RECENT, (), RECENT[-1], RECENT[-1], frozenset(), 250
    ),
}


def plain(item: Any) -> Any:
    """A set has no order and is never empty, and a store may answer bytes in a class of its own."""
    return item | (
        {"moved": {"BS": sorted(map(bytes, item["moved"]["BS"]))}} if "moved" in item else {}
    )


def test_an_update_of_a_gate_fits_and_does_once_what_it_means(kept: Table) -> None:
    for what, update in LARGEST.items():
        kept.answer(Put(THERE))
        expected = updated(THERE, update.actions)
        assert expected.get("moved") != {"BS": []}, what
        came = kept.answer(update)
        assert isinstance(came, Written), what
        assert plain(came.item) == plain(kept.answer(Get(update.key))) == plain(expected), what
        again = kept.answer(update)  # as an SDK sends it
        assert plain(again) == plain(expected), what


def test_a_gate_that_others_wrote_meanwhile_is_shown_and_left(kept: Table) -> None:
    taken = random.Random(1).sample(RECENT, 3)
    for update in (
        updates.decide(LANE, LIMIT, dict.fromkeys([*NEW[:3], taken[0]], 1)),
        updates.decide(LANE, LIMIT, {NEW[0]: -1_001}),
        updates.decide(LANE, LIMIT, ALL, seen=6),
        updates.decide(LANE, Limit(floor=0), {NEW[0]: -1}),
        updates.refuse(LANE, LIMIT, NEW[0], -2),
        updates.end(LANE, LIMIT, {HELD[0]: -3}, EXPIRED),
        updates.give(GATE, ("us-east-1#0", DOWN), 1_001),
        updates.give(replace(GATE, given={}), ("us-east-1#0", UP), 1),
        updates.carry_out(GATE, 10**6 + 1),
        updates.carry_out(replace(GATE, epoch=1), 1),
        updates.carry_in(replace(GATE, epoch=1), 20),
    ):
        kept.answer(Put(THERE))
        assert plain(kept.answer(update)) == plain(THERE)
        assert plain(kept.answer(Get(update.key))) == plain(THERE)


def test_a_gate_as_it_was_read_is_replaced_once(kept: Table) -> None:
    for there in (THERE, items.new_gate(LANE, LIMIT)):
        kept.answer(Put(there))
        read = kept.answer(Get(items.gate_key(LANE)))
        rebuilt = items.gate_item(replace(items.gate_of(LANE, read), version=9, moved=frozenset()))
        assert kept.answer(Put(rebuilt, has(read))) is None
        assert (
            kept.answer(Put(rebuilt, has(read)))
            == kept.answer(Get(items.gate_key(LANE)))
            == rebuilt
        )


# -- periods

MONTHS = Keep(late=timedelta(days=15), keep=timedelta(days=400))


def test_a_period_opens_as_its_base_says_and_retires(
    table: Table,
) -> None:
    now_ms = to_ms(datetime(2026, 11, 20, tzinfo=UTC))
    settings = Settings(
        table="any",
        region=LANE.region,
        limits={"llm:": Limit(ceiling=50, region=LANE.region)},
        periods={"llm:": replace(MONTHS, carry=20), "plain:": MONTHS},
        fold_min=1,
    )
    ledger = Ledger(settings, table=table, clock=lambda: now_ms)
    ledger.set_limit("llm:key", ceiling=30)
    ledger.add("llm:key@2026-11", 24)
    ledger.hold("llm:key@2026-11", 1, expires=timedelta(minutes=1))
    ledger.add("plain:a@2026-11", 1)
    for pack in (False, True):
        ledger.add_many(
            [Change("plain:a@2026-11", 1), Change("stock", 1), Change("stock", 1)], pack=pack
        )
    now_ms = to_ms(datetime(2026, 12, 20, tzinfo=UTC))
    assert (
        Compactor(settings, tables={LANE.region: table}, clock=lambda: now_ms)
        .compact("plain:a@2026-11")
        .folded
        == 3
    )
    ledger.add("llm:key@2026-12", 30)
    ledger.add("llm:key@2026-12", 6)
    with pytest.raises(LimitReached) as raised:
        ledger.add("llm:key@2026-12", 1)
    assert raised.value.limit == 36
    keys = list[Key]()
    page: KeyPage | None = None
    while page is None or page.last is not None:
        page = table.answer(Scan(page and page.last))
        assert page is not None
        keys += page.keys
    for key in keys:
        assert ("retires" in (table.answer(Get(key)) or {})) == ("@2026" in f"{key.pk}{key.sk}"), (
            key
        )
    assert {"delta", "fold", "gate", "lane", "shape"} <= {key.pk.partition("#")[0] for key in keys}
