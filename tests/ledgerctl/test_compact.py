"""`lag`, `compact`, `verify` and `rebuild` on a table in memory."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from ledger import items, tokens
from ledger.entries import ENTRY, Entries, packed
from ledger.errors import Throttled
from ledger.gate.items import gate_key
from ledger.requests import DeleteMany, Get, Put, keyed
from ledger.values import Delta, Lane, Segment
from tests.ledgerctl.support import A, B, Failing, Tables, held

LANE = Lane(A, 0, "c")
CHECKPOINT = items.checkpoint_key(LANE)


@pytest.fixture
def tables() -> Tables:
    """Thirty folded deltas of `c`, one stray below them, two short tails."""
    tables = Tables()
    tables.environ |= {"LEDGER_FOLD_MIN": "10", "LEDGER_KEEP_MS": "60001"}
    for _ in range(30):
        tables.ledger.add("c", 1)
    tables.ledger.add("cold", 5)
    tables.clock.now_ms += 60_000
    assert tables.ctl("compact", "c").out == "30 folded, 0 settled, 0 cleaned: 1 counter, lanes of eu-west-1\n"
    tables.ledger.add("c", 100, idempotency_key="late", at=datetime(2010, 12, 1, tzinfo=UTC))
    tables.ledger.add("c", 1)
    return tables


def damage(tables: Tables, **attributes: dict[str, str]) -> None:
    """The checkpoint of `c` with something else in it."""
    tables.table.answer(Put({**held(tables)[CHECKPOINT], **attributes}))


MANY = {"S": "many"}


def test_lag_shows_the_lane_with_strays_first(tables: Tables) -> None:
    worst, cold = tables.ctl("lag", "--json").documents
    tail = {"tail": 1, "oldest_age_ms": 0, "watermark_age_ms": 60_000}
    waits = {"strays": 1, "to_clean": 30, "to_do": ["settle"], "damage": None}
    assert worst == {"lane": "eu-west-1#0#c", "counter": "c", "region": A, "shard": 0, **tail, **waits}
    assert (cold["counter"], cold["tail"], cold["watermark_age_ms"], cold["to_do"]) == ("cold", 1, None, [])
    shown = tables.ctl("lag").out.splitlines()
    assert shown[1].split() == ["eu-west-1#0#c", "1", "0", "ms", "1", "min", "1", "30", "settle"]
    assert shown[-1] == "lanes that wait for the compactor: 1 of 2"


def test_lag_counts_what_is_due_alone() -> None:
    tables = Tables()
    tables.environ |= {"LEDGER_FOLD_MIN": "2"}

    def lag() -> tuple[list[str], str]:
        (document,) = tables.ctl("lag", "--json").documents
        return document["to_do"], tables.ctl("lag").out.splitlines()[-1].rpartition(": ")[2]

    for _ in range(2):
        tables.ledger.add("c", 1)
    assert lag() == ([], "0 of 1")  # younger than allowed_lateness_ms
    tables.clock.now_ms += 10_000
    assert lag() == (["fold"], "1 of 1")
    tables.ctl("compact")
    assert lag() == ([], "0 of 1")
    tables.clock.now_ms += 600_000
    assert lag() == (["clean"], "1 of 1")
    tables.ctl("compact")  # notes
    assert lag() == ([], "0 of 1")
    tables.clock.now_ms += 600_000
    assert lag() == (["clean"], "1 of 1")
    tables.environ["LEDGER_CLEAN"] = "false"
    assert lag() == ([], "0 of 1")


def test_compact_settles_and_cleans_what_waits(tables: Tables) -> None:
    assert tables.ctl("compact", "--json").documents[0]["settled"] == 1
    tables.clock.now_ms += 70_000
    tables.ctl("compact")
    tables.clock.now_ms += 70_000
    tables.ctl("compact")
    assert sum(key.pk == items.delta_pk(LANE) for key in held(tables)) == 1  # the tail
    assert tables.ctl("get", "c", "--json").documents[0]["value"] == 131
    assert tables.ctl("compact").code == 0


def test_a_damaged_lane_is_shown_first_stops_no_other_and_is_rebuilt(tables: Tables) -> None:
    damage(tables, total=MANY)
    lag = tables.ctl("lag", "--limit", "1")
    assert lag.out.splitlines()[1].split()[-1] == "damaged"
    assert "total is missing or not a whole number" in lag.err
    for _ in range(10):
        tables.ledger.add("other", 1)
    tables.clock.now_ms += 60_000
    said = tables.ctl("compact")
    assert (said.code, said.out.startswith("10 folded"), "c: The item pk='fold#eu-west-1#0#c'" in said.err) == (
        1,
        True,
        True,
    )
    assert "damaged: total is missing or not a whole number" in tables.ctl("rebuild", "c", "--dry-run").out
    assert "no segments" in tables.ctl("rebuild", "cold", "--yes").out
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    elsewhere = tables.ctl("compact", "--region", B)
    assert elsewhere.out == "0 folded, 0 settled, 0 cleaned: nothing needs it, lanes of us-east-1\n"


def throttling() -> tuple[Tables, Callable[[], None]]:
    """Throttles whoever asks for the checkpoint of `other`, once that is begun."""
    table = Failing()

    def begin() -> None:
        other = items.fold_pk(Lane(A, 0, "other"))
        table.failure = Throttled("Slower.")
        table.when = lambda request: isinstance(request, Get) and request.key.pk == other

    return Tables(table), begin


def test_a_conflict_beside_a_throttled_counter_is_about_the_data() -> None:
    tables, throttle = throttling()
    tables.environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_KEEP_MS": "60001"}
    delta = tables.ledger.add("c", 1).delta
    tables.clock.now_ms += 70_000
    for _ in range(2):  # the second one writes its clean note
        assert tables.ctl("compact").code == 0
    tables.table.answer(Put(items.delta_item(Delta(delta.lane, delta.token, 2))))
    throttle()
    tables.clock.now_ms += 70_000
    both = tables.ctl("compact", "c", "other")
    assert (both.code, "Slower." in both.err, "listed with another change" in both.err) == (1, True, True)


def test_lag_shows_the_other_lanes_and_says_which_is_missing() -> None:
    tables, throttle = throttling()
    for name in ("c", "other"):
        tables.ledger.add(name, 1)
    throttle()
    said = tables.ctl("lag")
    assert said.code == 3
    assert "eu-west-1#0#c " in said.out
    assert "lanes that wait for the compactor: 0 of 1" in said.out
    assert "eu-west-1#0#other was not seen: Slower." in said.err
    said = tables.ctl("lag", "--json")
    assert (said.code, said.err) == (3, "")
    assert said.documents[1] == {"lane": "eu-west-1#0#other", "error": "Slower."}
    assert tables.ctl("lag", "other").code == 3


def test_verify_counts_strays_and_finds_no_difference(tables: Tables) -> None:
    said = tables.ctl("verify")
    assert said.code == 0
    assert said.out.startswith("counters that add up: 2 of 2; strays that wait for the next settle: 1; --scan finds")
    (checked,) = tables.ctl("verify", "c", "--json").documents
    assert checked == {"counter": "c", "ok": True, "value": 131, "strays": 1, "differences": [], "unread": []}


def test_verify_shows_each_difference_and_what_cannot_be_counted(tables: Tables) -> None:
    damage(tables, total={"N": "29"})
    said = tables.ctl("verify")
    assert said.code == 1
    assert "differs: eu-west-1#0#c: the checkpoint's total is 29, its segments give 30." in said.out
    assert "counters that add up: 1 of 2" in said.out
    documents = {each["counter"]: each["ok"] for each in tables.ctl("verify", "--json").documents}
    assert documents == {"c": False, "cold": True}
    damage(tables, total=MANY)
    said = tables.ctl("verify", "--json")
    assert (said.code, said.err) == (1, "")
    damaged, cold = said.documents
    assert (damaged["ok"], cold["ok"]) == (None, True)
    assert "total is missing or not a whole number" in damaged["error"]


def test_rebuild_shows_what_it_would_write_and_writes_it_when_told(tables: Tables) -> None:
    damage(tables, total={"N": "29"})
    before = dict(held(tables))
    dry = tables.ctl("rebuild", "c", "--dry-run")
    (fields,) = tables.ctl("rebuild", "c", "--dry-run", "--json").documents[0]["lanes"]
    now = {"lane": "eu-west-1#0#c", "now": "version 1, total 29, count 30"}
    assert fields == {**now, "would": "write", "total": 30, "count": 30}
    assert "version 1, total 29, count 30" in dry.out
    assert "its segments give a checkpoint with total 30, count 30" in dry.out
    refused = tables.ctl("rebuild", "c", input="n\n")
    unanswered = tables.ctl("rebuild", "c")
    assert (refused.code, unanswered.code, held(tables)) == (2, 2, before)
    assert "--yes" in unanswered.err
    assert "rebuilt eu-west-1#0#c: total 30" in tables.ctl("rebuild", "c", input="y\n").out
    assert tables.ctl("verify").code == 0
    (again,) = tables.ctl("rebuild", "c", "--yes", "--json").documents
    assert again["lanes"] == [{"lane": "eu-west-1#0#c", "total": 30}]


def test_rebuild_of_a_limited_counter_writes_its_gates_anew_and_says_what_is_lost() -> None:
    tables = Tables()
    tables.environ["LEDGER_LIMITS"] = '{"seats:": {"ceiling": 10, "region": "eu-west-1"}}'
    for _ in range(3):
        tables.ledger.add("seats:gig", 1)
    key = gate_key(Lane(A, 0, "seats:gig"))
    tables.table.answer(Put({**held(tables)[key], "count": {"N": "2"}, "total": {"N": "2"}}))
    damaged = dict(held(tables))
    dry = tables.ctl("rebuild", "seats:gig", "--dry-run")
    refused = tables.ctl("rebuild", "seats:gig", input="n\n")
    assert (dry.code, refused.code, held(tables)) == (0, 2, damaged)
    for said in (dry.out, refused.out):
        assert "eu-west-1#0#seats:gig: value 5, count 4" in said
        assert "  2 changes of sum 2 are in the value and their tokens are lost" in said
    assert "Stop whoever adds" in refused.err
    (done,) = tables.ctl("rebuild", "seats:gig", "--yes", "--json").documents
    (lane,) = done["lanes"]
    assert (lane["value"], len(lane["told"]), done["written"]) == (5, 1, True)
    assert tables.ctl("rebuild", "seats:gig", "--yes").out == "rebuilt eu-west-1#0#seats:gig: value 5, count 4\n"
    assert tables.ctl("verify", "seats:gig").code == 0


def without_segments(tables: Tables, lane: Lane) -> None:
    """What half of a commit leaves, or a hand."""
    for key in [key for key in held(tables) if key.pk == items.fold_pk(lane) and key.sk.startswith("segment#")]:
        tables.table.answer(DeleteMany((keyed(key),)))


def test_a_dry_run_says_that_a_checkpoint_without_segments_is_deleted(tables: Tables) -> None:
    without_segments(tables, LANE)
    damage(tables, version={"N": "7"})
    later = tables.clock.now_ms
    tables.clock.now_ms += 600_000
    for options in (("--dry-run",), ("--yes",)):
        said = tables.ctl("rebuild", "c", *options)
        assert (said.code, "no segment to rebuild it from" in said.err) == (1, True)
    failing = tables.ctl("rebuild", "c", "--dry-run", "--json").documents[0]["lanes"][0]
    assert (failing["would"], "no segment to rebuild it from" in failing["error"]) == ("fail", True)
    verified = tables.ctl("verify", "c")
    assert (verified.code, "c: its events give cannot be told" in verified.out) == (1, True)
    tables.clock.now_ms = later
    damage(tables, version={"N": "1"})
    tables.table.answer(DeleteMany((keyed(items.note_key(LANE)),)))
    landing = tables.ctl("rebuild", "c", "--dry-run")
    assert (landing.code, "may still be landing" in landing.err) == (3, True)
    tables.clock.now_ms += 600_000
    before = dict(held(tables))
    dry = tables.ctl("rebuild", "c", "--dry-run")
    assert (dry.code, held(tables)) == (0, before)
    assert "it has no segments: this checkpoint is deleted" in dry.out
    (said,) = tables.ctl("rebuild", "c", "--dry-run", "--json").documents
    assert said["lanes"][0]["would"] == "delete"
    done = tables.ctl("rebuild", "c", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "rebuilt eu-west-1#0#c: no checkpoint")
    assert CHECKPOINT not in held(tables)


def test_a_dry_run_of_a_lane_with_an_orphan_writes_nothing(tables: Tables) -> None:
    there = items.checkpoint_of(LANE, held(tables)[CHECKPOINT])
    lost = Delta(LANE, tokens.before(there.watermark) or "", 7)
    (listed,) = [i for key, i in held(tables).items() if key.pk == CHECKPOINT.pk and key.sk.startswith("segment#")]
    first = next(iter(items.segment_of(LANE, listed)))
    orphan = Segment(LANE, there.last, 2, Entries.of([ENTRY.pack(*first), packed(lost.token, lost.change)]))
    tables.table.answer(Put(items.segment_item(orphan)))
    before = dict(held(tables))
    dry = tables.ctl("rebuild", "c", "--dry-run")
    assert (dry.code, held(tables)) == (0, before)
    assert "its segments give a checkpoint with total 30, count 30" in dry.out
    assert tables.ctl("rebuild", "c", "--yes").code == 0
    assert items.delta_key(lost) in held(tables)
    assert items.segment_key(LANE, there.last, 2) not in held(tables)


def test_a_lane_that_cannot_be_rebuilt_hides_no_other(tables: Tables) -> None:
    tables.environ |= {"LEDGER_SHARDS": '{"": 2}', "LEDGER_FOLD_MIN": "1"}
    for _ in range(30):
        tables.ledger.add("d", 1)
    tables.clock.now_ms += 60_000
    tables.ctl("compact", "d")
    without_segments(tables, Lane(A, 1, "d"))
    totals = items.checkpoint_of(Lane(A, 0, "d"), held(tables)[items.checkpoint_key(Lane(A, 0, "d"))])
    said = tables.ctl("rebuild", "d", "--yes")
    assert (said.code, "may still be landing" in said.err) == (3, True)
    assert f"rebuilt eu-west-1#0#d: total {totals.total}" in said.out
    said = tables.ctl("rebuild", "d", "--yes", "--json")
    assert (said.code, json.loads(said.err)["error"]) == (3, "GaveUp")
    first, second = said.documents[0]["lanes"]
    assert (first["total"], "may still be landing" in second["error"]) == (totals.total, True)
    dry = tables.ctl("rebuild", "d", "--dry-run")
    assert (dry.code, "eu-west-1#1#d" in dry.out) == (3, True)


def test_compact_and_verify_tell_of_lanes_that_nobody_reads(tables: Tables) -> None:
    near, far = Lane(A, 1, "c"), Lane("ap-south-1", 700, "c")
    for lane in (near, far):
        tables.table.answer(Put(items.delta_item(Delta(lane, "015JGGKGE064BG4X58772SZHBM", 1))))
    said = tables.ctl("compact")
    assert said.code == 1
    assert f"{near}: there are changes in this lane" in said.err
    assert f"{far}: there are changes in this lane" in said.err
    for command in (("verify", "c", "--json"), ("verify", "--json")):
        checked = tables.ctl(*command).documents[0]
        assert (checked["ok"], checked["unread"]) == (False, [str(near)])  # a scan sees more
    c, cold = tables.ctl("verify", "--scan", "--json").documents
    assert (c["ok"], c["unread"]) == (False, [str(far), str(near)])
    assert (cold["ok"], cold["unread"]) == (True, [])
    said = tables.ctl("verify")
    assert said.code == 1
    assert f"differs: {near}" in said.out
