"""`lag`, `compact`, `verify` and `rebuild` on a table in memory."""

import json
from datetime import UTC, datetime

import pytest

from ledger import Ledger
from ledger.core import items, tokens
from ledger.core.checks import to_datetime
from ledger.core.entries import ENTRY, Entries, packed
from ledger.core.errors import OutcomeUnknown, Throttled
from ledger.core.requests import Get, GetMany, Transact
from ledger.core.values import Delta, Lane, Segment
from ledger.gate.items import gate_key
from tests.ledgerctl.support import NOW_MS, A, B, Tables, limited

LANE = Lane(A, 0, "c")
CHECKPOINT = items.checkpoint_key(LANE)
MANY = {"S": "many"}
WHY = "total is missing or not a whole number"


@pytest.fixture
def tables() -> Tables:
    """Thirty folded deltas of `c`, one stray below them, two short tails."""
    tables = Tables()
    tables.environ |= {"LEDGER_FOLD_MIN": "10", "LEDGER_KEEP_MS": "60001"}
    for _ in range(30):
        tables.ledger.add("c", 1)
    tables.ledger.add("cold", 5)
    tables.clock.now_ms += 60_000
    assert (
        tables("compact c").out
        == "30 folded, 0 settled, 0 cleaned: 1 counter, lanes of eu-west-1\n"
    )
    tables.ledger.add("c", 100, idempotency_key="late", at=datetime(2010, 12, 1, tzinfo=UTC))
    tables.ledger.add("c", 1)
    return tables


def without_segments(tables: Tables, lane: Lane) -> None:
    """What half of a commit leaves, or a hand."""
    pk = items.fold_pk(lane)
    tables.table.drop(
        *[key for key in tables.held if key.pk == pk and key.sk.startswith("segment#")]
    )


def test_lag_shows_strays_first_and_compact_settles_them(
    tables: Tables,
) -> None:
    worst, cold = tables.json("lag")
    tail = {"tail": 1, "oldest_age_ms": 0, "watermark_age_ms": 60_000}
    waits = {"strays": 1, "to_clean": 30, "to_do": ["settle"], "damage": None}
    assert worst == {
        "lane": "eu-west-1#0#c",
        "counter": "c",
        "region": A,
        "shard": 0,
        **tail,
        **waits,
    }
    assert (cold["counter"], cold["tail"], cold["watermark_age_ms"], cold["to_do"]) == (
        "cold",
        1,
        None,
        [],
    )
    shown = tables("lag").out.splitlines()
    assert shown[1].split() == ["eu-west-1#0#c", "1", "0", "ms", "1", "min", "1", "30", "settle"]
    assert shown[-1] == "lanes that wait for the compactor: 1 of 2"
    (said,) = tables.json("compact")
    counts = {
        "counters": 1,
        "listed": 0,
        "folded": 0,
        "settled": 1,
        "cleaned": 0,
        "commits": 1,
        "gave_up": 0,
    }
    nothing = {"postponed": 0, "postponed_by": [], "conflicts": [], "problems": {}}
    assert said == {
        "region": A,
        **counts,
        **nothing,
        "requests": 0,
        "read_units": 0,
        "write_units": 0,
    }
    for _ in range(2):
        tables.clock.now_ms += 70_000
        tables("compact")
    assert sum(key.pk == items.delta_pk(LANE) for key in tables.held) == 1  # the tail
    assert tables.json("get c")[0]["value"] == 131
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    elsewhere = "0 folded, 0 settled, 0 cleaned: nothing needs it, lanes of us-east-1\n"
    assert tables(f"compact --region {B}").out == elsewhere


def test_lag_counts_what_is_due_alone() -> None:
    tables = Tables()
    tables.environ |= {"LEDGER_FOLD_MIN": "2"}
    for later_ms, adds, to_do in (
        (0, 2, []),  # younger than allowed_lateness_ms
        (10_000, 0, ["fold"]),
        (600_000, 0, ["clean"]),
        (600_000, 0, ["clean"]),  # what was noted
        (0, 2, []),
    ):
        tables.clock.now_ms += later_ms
        for _ in range(adds):
            tables.ledger.add("c", 1)
        assert tables.json("lag")[0]["to_do"] == to_do
        tables("lag", says=f"lanes that wait for the compactor: {len(to_do)} of 1")
        if to_do:
            tables("compact")
            assert tables.json("lag")[0]["to_do"] == []
    tables.clock.now_ms += 10_000
    tables("compact")
    tables.clock.now_ms += 600_000
    assert tables.json("lag")[0]["to_do"] == ["clean"]
    tables.environ["LEDGER_CLEAN"] = "false"
    assert tables.json("lag")[0]["to_do"] == []


def test_what_is_damaged_or_in_conflict_hides_nothing_else(tables: Tables) -> None:
    other = items.fold_pk(Lane(A, 0, "other"))
    tables.clock.now_ms += 70_000
    tables("compact c")  # the second one writes its clean note
    token = next(key.sk for key in tables.held if key.pk == items.delta_pk(LANE))
    tables.table.put(Delta(LANE, token, 2))
    for _ in range(10):
        tables.ledger.add("other", 1)
    tables.fails(
        lambda request: isinstance(request, Get) and request.key.pk == other, Throttled("Slower.")
    )
    said = tables("lag", 3, says="eu-west-1#0#other could not be read: Slower.")
    assert ("eu-west-1#0#c " in said.out, said.out.splitlines()[-1].endswith(" of 2")) == (
        True,
        True,
    )
    assert tables.json("lag", 3)[2] == {"lane": "eu-west-1#0#other", "error": "Slower."}
    tables("lag other", 3)
    tables.clock.now_ms += 70_000
    assert "Slower." in tables("compact c other", 1, says="with another change").err
    tables.mends()
    tables.table.alter(CHECKPOINT, total=MANY)
    assert tables("lag --limit 1", says=WHY).out.splitlines()[1].split()[-1] == "damaged"
    assert tables("compact", 1, says="c: The item pk='fold#eu-west-1#0#c'").out.startswith(
        "10 folded"
    )
    tables("rebuild c --dry-run", says=f"damaged: {WHY}")
    tables("rebuild cold --yes", says="it has no segments")


def test_compact_gives_no_hint_of_an_add(tables: Tables) -> None:
    tables.clock.now_ms += 70_000
    lost = "transact_write_items may or may not have been applied (no answer)."
    tables.fails(Transact, OutcomeUnknown(lost))
    said = tables.ctl("compact", "c", "cold")
    assert (f"c: {lost}" in " ".join(said.err.split()), "key" in said.err) == (True, False)
    (document,) = tables.ctl("compact", "c", "cold", "--json").documents
    assert document["problems"] == {"c": lost}


def test_verify_counts_strays_and_shows_each_difference(
    tables: Tables,
) -> None:
    tables(
        "verify",
        says="counters that add up: 2 of 2; strays that wait for the next settle: 1; --scan also",
    )
    fine = {"counter": "c", "ok": True, "value": 131, "strays": 1, "differences": [], "unread": []}
    assert tables.json("verify c") == [fine]
    tables.table.forget_days(Lane(A, 0, "c"), total={"N": "29"})
    difference = "eu-west-1#0#c: the checkpoint's total is 29, its segments give 30."
    assert f"differs: {difference}" in tables("verify", 1, says="counters that add up: 1 of 2").out
    assert tables.json("verify c", 1) == [fine | {"ok": False, "differences": [difference]}]
    tables.table.alter(CHECKPOINT, total=MANY)
    damaged, cold = tables.json("verify", 1)
    assert (damaged["ok"], cold["ok"], WHY in damaged["error"]) == (None, True, True)
    # another verify would say the same
    alone = tables("verify c", 1, says="values.md#lanes-damaged").err
    assert "ledgerctl verify" not in alone


def test_counters_that_were_typed_are_looked_for_together(tables: Tables) -> None:
    """Where one of them cannot be read, each is read alone, and the command says why."""
    tables.table.alter(CHECKPOINT, total=MANY)
    for typed, together in (("cold new:1 new:2", [3]), ("c cold new:1", [3, 1, 1, 1])):
        tables.table.asked.clear()
        tables(f"verify {typed}", 2, "Nobody has added to 'new:1'.")
        many = [each for each in tables.table.asked if isinstance(each, GetMany)]
        assert [len(each.keys) for each in many[: len(together)]] == together


def test_compact_and_verify_report_lanes_that_nobody_reads(tables: Tables) -> None:
    near, far = Lane(A, 1, "c"), Lane("ap-south-1", 700, "c")
    tables.table.put(*(Delta(lane, "015JGGKGE064BG4X58772SZHBM", 1) for lane in (near, far)))
    for lane in (near, far):
        tables("compact", 1, says=f"{lane}: this lane has changes")
    for command, unread in (
        ("verify c", [near]),
        ("verify", [near]),
        ("verify --scan", [far, near]),
    ):
        checked = tables.json(command, 1)[0]
        assert (checked["ok"], checked["unread"]) == (False, [*map(str, unread)])
    assert tables.json("verify --scan", 1)[1]["ok"] is True
    tables("verify", 1, says=f"differs: {near}")
    section = tables("verify", 1, says="values.md#lanes-unread").err
    assert "verify-difference" not in section
    tables.table.forget_days(Lane(A, 0, "c"), total={"N": "29"})
    assert "values.md#lanes-unread" in tables("verify", 1, says="values.md#verify-difference").err


def test_rebuild_writes_only_when_told(tables: Tables) -> None:
    tables.table.forget_days(Lane(A, 0, "c"), total={"N": "29"})
    before = dict(tables.held)
    would = {"now": "version 1, total 29, count 30", "would": "write", "total": 30, "count": 30}
    dry = {
        "counter": "c",
        "region": A,
        "lanes": [{"lane": "eu-west-1#0#c", **would}],
        "written": False,
    }
    assert tables.json("rebuild c --dry-run") == [dry]
    shown = "version 1, total 29, count 30 its segments give a checkpoint with total 30, count 30"
    tables("rebuild c --dry-run", says=shown)
    assert tables.ctl("rebuild", "c", input="n\n").code == 2
    tables("rebuild c", 2, says="--yes")
    assert tables.held == before
    assert "rebuilt eu-west-1#0#c: total 30" in tables.ctl("rebuild", "c", input="y\n").out
    tables("verify")
    done = {
        "counter": "c",
        "region": A,
        "lanes": [{"lane": "eu-west-1#0#c", "total": 30}],
        "written": True,
    }
    assert tables.json("rebuild c --yes") == [done]


def test_rebuild_of_a_limited_counter_says_what_is_lost() -> None:
    tables = limited()
    for _ in range(3):
        tables.ledger.add("seats:gig", 1)
    tables.table.alter(gate_key(Lane(A, 0, "seats:gig")), count={"N": "2"}, total={"N": "2"})
    damaged = dict(tables.held)
    dry, refused = (
        tables("rebuild seats:gig --dry-run").out,
        tables.ctl("rebuild", "seats:gig", input="n\n"),
    )
    assert (refused.code, "Stop all that add" in refused.err, tables.held) == (2, True, damaged)
    assert "eu-west-1#0#seats:gig: value 5, count 4" in dry
    assert "  2 changes of sum 2 are in the value and their tokens are lost" in dry
    (done,) = tables.json("rebuild seats:gig --yes")
    (lane,) = done["lanes"]
    assert (lane["value"], lane["count"], len(lane["told"]), done["written"]) == (5, 4, 1, True)
    assert (
        tables("rebuild seats:gig --yes").out == "rebuilt eu-west-1#0#seats:gig: value 5, count 4\n"
    )
    tables("verify seats:gig")


def test_a_dry_run_writes_no_gate_of_any_region() -> None:
    tables = limited(A, B)
    ledger = Ledger(
        tables.settings(), tables=dict.fromkeys((A, B), tables.table), clock=tables.clock
    )
    for region, amount in ((A, 3), (B, 2)):
        ledger.add("seats:gig", amount, idempotency_key="k", at=to_datetime(NOW_MS), region=region)
    for region, count in ((A, "5"), (B, "6")):
        tables.table.alter(
            gate_key(Lane(region, 0, "seats:gig")), count={"N": count}, total={"N": "1"}
        )
    damaged = dict(tables.held)
    dry = tables("rebuild seats:gig --dry-run").out
    assert tables.held == damaged
    assert (
        "rebuilt" in dry,
        f"{A}#0#seats:gig: value" in dry,
        f"{B}#0#seats:gig: value" in dry,
    ) == (False, True, True)
    tables("rebuild seats:gig --yes")
    lanes = [gate_key(Lane(region, 0, "seats:gig")) for region in (A, B)]
    assert [tables.held[lane] == damaged[lane] for lane in lanes] == [False, False]


def test_a_dry_run_decides_as_a_rebuild_does_and_writes_nothing(tables: Tables) -> None:
    there = items.checkpoint_of(LANE, tables.held[CHECKPOINT])
    lost = Delta(LANE, tokens.before(there.watermark) or "", 7)
    (listed,) = [
        i
        for key, i in tables.held.items()
        if key.pk == CHECKPOINT.pk and key.sk.startswith("segment#")
    ]
    first = next(iter(items.segment_of(LANE, listed)))
    orphan = Segment(
        LANE, there.last, 2, Entries.of([ENTRY.pack(*first), packed(lost.token, lost.change)])
    )
    tables.table.store([items.segment_item(orphan)])
    before = dict(tables.held)
    tables("rebuild c --dry-run", says="its segments give a checkpoint with total 30, count 30")
    assert tables.held == before
    tables("rebuild c --yes")
    assert (
        items.delta_key(lost) in tables.held,
        items.segment_key(LANE, there.last, 2) in tables.held,
    ) == (
        True,
        False,
    )

    without_segments(tables, LANE)
    tables.table.alter(CHECKPOINT, version={"N": "7"})
    soon = tables.clock.now_ms
    tables.clock.now_ms += 600_000
    tables("rebuild c --yes", 1, says="no segment to rebuild that from")
    failing = tables.json("rebuild c --dry-run", 1)[0]["lanes"][0]
    assert (failing["would"], "no segment to rebuild that from" in failing["error"]) == (
        "fail",
        True,
    )
    tables("verify c", 1, says="c: recounted from all its changes: no value")
    tables.clock.now_ms = soon
    tables.table.alter(CHECKPOINT, version={"N": "1"})
    tables.table.drop(items.note_key(LANE))
    tables("rebuild c --dry-run", 3, says="may still be landing")
    tables.clock.now_ms += 600_000
    before = dict(tables.held)
    tables("rebuild c --dry-run", says="it has no segments: a rebuild deletes this checkpoint")
    assert tables.json("rebuild c --dry-run")[0]["lanes"][0]["would"] == "delete"
    assert tables.held == before
    assert "rebuilt eu-west-1#0#c: no checkpoint" in tables("rebuild c --yes").out
    assert CHECKPOINT not in tables.held


def test_a_lane_that_cannot_be_rebuilt_hides_no_other(tables: Tables) -> None:
    tables.environ |= {"LEDGER_SHARDS": '{"": 2}', "LEDGER_FOLD_MIN": "1"}
    for _ in range(30):
        tables.ledger.add("d", 1)
    tables.clock.now_ms += 60_000
    tables("compact d")
    without_segments(tables, Lane(A, 1, "d"))
    total = items.checkpoint_of(
        Lane(A, 0, "d"), tables.held[items.checkpoint_key(Lane(A, 0, "d"))]
    ).total
    assert (
        f"rebuilt eu-west-1#0#d: total {total}"
        in tables("rebuild d --yes", 3, says="may still be landing").out
    )
    said = tables("rebuild d --yes --json", 3)
    assert json.loads(said.err)["error"] == "GaveUp"
    first, second = said.documents[0]["lanes"]
    assert (first["total"], "may still be landing" in second["error"]) == (total, True)
    tables("rebuild d --dry-run", 3, says="eu-west-1#1#d")
