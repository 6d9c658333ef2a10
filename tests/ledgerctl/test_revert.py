"""`revert`: a change's opposite, once, at its own time and in its own Region, or nothing."""

import pytest

from ledger.core import items, tokens
from ledger.core.errors import OutcomeUnknown
from ledger.core.requests import Put
from ledger.core.values import Delta, Lane
from tests.ledgerctl.support import A, B, Tables, limited, refused

AT = "2010-12-01T08:26:00Z"
KEYED = f"--key 536365/1 --at {AT}"


@pytest.fixture
def tables() -> Tables:
    tables = Tables()
    tables.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"many:": 4}'}
    return tables


def added(tables: Tables, counter: str, change: int, options: str = KEYED) -> str:
    """The token of a change."""
    return str(tables.json(f"add {counter} {change} {options}")[0]["token"])


def test_the_opposite_of_a_change_counts_once_at_its_time(
    tables: Tables,
) -> None:
    for counter in ("stock:1", "many:1"):
        tables(f"add {counter} 100 --key other --at {AT}")
        token = added(tables, counter, -6)
        documents = [tables.json(f"revert {counter} {token} --yes")[0] for _ in range(2)]
        made = documents[0]["token"]
        fields = {
            "counter": counter,
            "change": 6,
            "key": f"revert:{token}",
            "at": "2010-12-01T08:26:00.000Z",
        }
        fields |= {
            "token": tokens.keyed(counter, f"revert:{token}", tokens.time_ms(token)),
            "region": A,
        }
        assert documents == [
            {"outcome": o, **fields, "reverts": token} for o in ("recorded", "replayed")
        ]
        assert tables.json(f"get {counter}")[0]["value"] == 100
        day = tables.json(f"history {counter} --since 2010-12-01 --until 2010-12-02")
        assert sorted(each["change"] for each in day) == [-6, 6, 100]
        tables(
            f"revert {counter} {made} --yes", says=f"recorded: -6 to {counter}; it is in the table"
        )
        assert tables.json(f"get {counter}")[0]["value"] == 94


def test_it_asks_before_it_adds(tables: Tables) -> None:
    token = added(tables, "c", -6)
    for answer in ("n\n", ""):
        said = tables.ctl("revert", "c", token, input=answer)
        assert said.code == 2
        assert said.err.startswith(
            f"c has -6 of 2010-12-01 08:26:00Z in {A}.\nAdd +6 at that time? [y/N]"
        )
        assert "Nothing was added." in said.err
    assert len(tables.json("history c")) == 1
    for means in (
        "recorded: +6 to c; it is in the table",
        "replayed: +6 to c; it was reverted before",
    ):
        assert means in tables.ctl("revert", "c", token, input="y\n").out


def test_a_token_the_counter_lacks_is_refused_with_a_remedy(tables: Tables) -> None:
    token = added(tables, "c", -6)
    others = (tokens.before(token), tokens.last_of(tokens.time_ms(token)), "0" * 26, "7" + "Z" * 25)
    for typed in (
        *(f"c {other}" for other in others),
        f"d {token}",
        f"c {token} --home-region {B}",
    ):
        refused(
            tables(f"revert {typed} --yes", 1),
            1,
            "has no change with the token",
            "`ledgerctl history`",
        )
    for typed in ("c nonsense", f"c {token.lower()}"):
        refused(tables(f"revert {typed} --yes", 2), 2, "is not a token")
    assert len(tables.json("history c")) == 1
    assert tables.json("history d") == []


def test_a_token_of_two_regions_is_reverted_in_each(
    tables: Tables,
) -> None:
    token = added(tables, "c", -6)
    assert added(tables, "c", -6, f"{KEYED} --region {B}") == token
    below = tokens.before(token)
    assert below is not None
    tables.table.store([items.delta_item(Delta(Lane(B, 0, "c"), below, 1))])
    said = tables(f"revert c {token} --yes", 2)
    refused(said, 2, f"in each of {A} and {B}", "--home-region")
    for region in (A, B):
        assert tables.json(f"revert c {token} --yes --home-region {region}")[0]["region"] == region
    assert tables.json("get c")[0]["by_region"] == {A: 0, B: 1}


def test_folded_changes_and_unlisted_strays_are_found(
    tables: Tables,
) -> None:
    tables.environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_REGIONS": A}
    folded = [added(tables, "c", 1, f"--key {n} --at {AT}") for n in range(3)]
    tables("compact c", says="3 folded")
    stray = Delta(Lane(A, 0, "c"), tokens.make(1_000, b"late of all"[:10]), 50)
    tables.table.store([items.delta_item(stray)])
    for token in (*folded, stray.token):
        tables(f"revert c {token} --yes", says="recorded")
    assert {(stray.token, 50)}.isdisjoint(
        (each["token"], each["change"]) for each in tables.json("history c")
    )
    tables("compact c", says="5 settled")
    assert tables.json("get c")[0]["value"] == 0
    tables("verify c")


def test_a_limited_counters_gate_decides_for_ever() -> None:
    tables = limited()
    came = added(tables, "stock:1", 5)
    went = added(tables, "stock:1", -5, f"--key sold --at {AT}")
    refused(
        tables(f"revert stock:1 {came} --yes", 1), 1, "would pass the limit", "ledgerctl standing"
    )
    tables(f"revert stock:1 {went} --yes", says="recorded: +5 to stock:1")
    refused(tables(f"revert stock:1 {came} --yes", 1), 1, "final")
    (hold,) = tables.json("hold stock:1 -2 --expires 5m")
    refused(tables(f"revert stock:1 {hold['id'][:26]} --yes", 1), 1, "has no change with the token")
    assert tables.json("get stock:1")[0]["value"] == 5


def test_an_unanswered_revert_prints_the_command_to_repeat(
    tables: Tables,
) -> None:
    token = added(tables, "c", -6, f"{KEYED} --region {B}")
    tables.fails(Put, OutcomeUnknown("put_item may or may not have been applied."), after=True)
    said = tables(
        f"revert c {token} --yes", 3, says="Nobody knows whether the change of +6 is in c"
    )
    tables.mends()
    tables(said.err.splitlines()[-1].partition("ledgerctl ")[2], says="replayed: +6 to c")
    tables(f"revert c {token} --yes", says="replayed")
    assert tables.json("get c")[0]["by_region"] == {A: 0, B: 0}
