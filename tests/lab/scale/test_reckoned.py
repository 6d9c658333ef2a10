"""What is reckoned: the model of a lane against the shipped functions, dollars against ring.md's and by hand."""

from collections import Counter

import pytest

from lab.meters.charge import Charge
from lab.scale import lines, lives
from lab.scale.dollars import as_units, cpu_ms, finding
from lab.scale.goal import Goal
from lab.scale.keeping import Keeping
from lab.scale.lived import Lived
from lab.scale.loads import MORE, RINGS, Load, zipf
from lab.scale.months import before, every_month, marks_units
from lab.scale.tails import Tails
from ledgerctl.bill import LAMBDA_GB_S
from service.ring.ring import EVERY_S


def test_the_model_of_a_lane_says_what_the_shipped_functions_do() -> None:
    """Of some 200 folds, so within a fifth or so."""
    lived = lives.cold(12, 0.03, days=0.4, measured=0.3)[1]
    told = Load("as shipped", 0.03).told(40_000)
    assert told.all_messages / told.changes == pytest.approx(lived.messages / lived.changes, rel=0.2)
    assert told.visits / told.changes == pytest.approx(lived.visits / lived.changes, rel=0.2)
    commits = lived.cost(operation="TransactWriteItems").write_units / lived.changes
    assert told.writes("commit") == pytest.approx(commits, rel=0.2)
    assert told.reads("look") == pytest.approx(lived.cost(kind="look").read_units / lived.changes, rel=0.2)
    assert told.reads() == pytest.approx(lived.cost("compact").read_units / lived.changes, rel=0.2)
    assert told.tails.mean == pytest.approx(lived.tails.mean, rel=0.25)


def test_a_cold_lane_rings_once_in_fold_min_changes_and_a_busy_one_once_a_minute() -> None:
    cold, busy = Load("cold", 1e-5).told(20_000), Load("busy", 30.0).told(60_000)
    assert cold.all_messages / cold.changes == pytest.approx(1 / 32, rel=0.1)
    assert (cold.writes("put"), cold.spared) == (1, 0)
    assert busy.changes / 30 / busy.all_messages == pytest.approx(EVERY_S + 32 / 30, rel=0.1)
    assert busy.tails.longest < 30 * 2 * 75


def test_loads_keep_their_rates() -> None:
    for load in (*RINGS[-1:], *MORE[:2]):
        assert load.told(2_000).changes == 2_000 * load.each
    parts = list(zipf())
    assert sum(lanes for lanes, _ in parts) == 10**6
    assert sum(lanes * load.rate for lanes, load in parts) == pytest.approx(10**4)


def test_late_items_are_named_once_or_twice_and_settled_where_a_fold_has_passed() -> None:
    late = next(load for load in MORE if "late" in load.name).told(10_000)
    named, again = late.messages["named"], late.messages["again"]
    assert named == pytest.approx(100, rel=0.5)
    assert again <= named
    assert late.settles == pytest.approx(named + again, abs=3)


def test_before_is_what_ring_md_reckoned() -> None:
    month_s = 720 * 3_600
    assert marks_units(0.01) == (3, 1)
    assert marks_units(1_000)[0] == pytest.approx(0.0002, abs=5e-5)
    assert before(0.01, 1e4 * month_s, 1) == pytest.approx(90_471, rel=0.01)
    assert before(0.1, 1e5 * month_s, 2) == pytest.approx(506_190, rel=0.01)


def hand_made() -> Lived:
    """A million changes."""
    costs = {
        ("put", "delta", "PutItem"): Charge(10**6, 0, 10**6, 10**6),
        ("ring", "lane", "BatchGetItem"): Charge(1_000, 8_000.0),
        ("compact", "look", "GetItem"): Charge(30_000, 30_000.0),
        ("compact", "fold", "TransactWriteItems"): Charge(20_000, 0, 100_000, 100_000),
        ("sweep", "sweep", "PutItem"): Charge(9, 0, 9, 9),
    }
    requests = Counter({"send": 3_000, "receive": 3_000, "delete": 3_000})
    calls, cpu_s = Counter({"ring": 1_000, "compact": 600}), Counter({"ring": 10, "compact": 20})
    metrics = Counter({"LanesVisited": 15_000, "LanesLooked": 15_000, "LanesSwept": 10})
    return Lived(10**6, costs, requests, 30_000, metrics, cpu_s, calls, Tails([1, 2, 3]))


CLIENT = dict.fromkeys(("GetItem", "BatchGetItem", "TransactWriteItems", "SendMessageBatch"), 0.001)


def test_finding_is_directory_messages_looks_calls_and_time() -> None:
    found = finding(hand_made(), CLIENT)
    assert found.directory == pytest.approx(8_000 * 0.125e-6)
    assert found.looks == pytest.approx(30_000 * 0.125e-6)
    assert found.sqs == pytest.approx(9_000 * 0.40e-6)
    assert sum(found.calls.values()) == pytest.approx(1_600 * 0.20e-6)
    assert cpu_ms(hand_made(), "ring", CLIENT) == pytest.approx((10 + 4_000 * 0.001) / 1_000)
    compact_s = (20 + 50_000 * 0.001) * 1_769 / 1_024 + 50_000 * 0.005 / 8
    assert found.time["compact"] == pytest.approx(compact_s * LAMBDA_GB_S)
    assert as_units(found.counted) == pytest.approx((0.001 + 0.00375 + 0.0036 + 0.00032) / 0.625)
    assert found.dollars > found.counted
    assert hand_made().write_units == 1.1


def test_a_tail_is_weighed_by_time() -> None:
    tails = Tails([5])
    tails.add(1, 8)
    tails.add(100, 1)
    assert tails.mean == pytest.approx(11.3)
    assert tails.longest == 100
    assert [tails.quantile(share) for share in (0.5, 0.8, 0.85, 0.99)] == [1, 1, 5, 100]
    assert (tails + tails).mean == tails.mean


def test_a_delete_pays_after_months_and_sooner_for_full_packs() -> None:
    single = Keeping(1, 1)
    assert (single.item_bytes, single.deletes) == (69, 0.625)
    assert single.month == pytest.approx(1e6 * (69 + 100) / 1e9 * 0.45)
    assert single.months == pytest.approx(8.2, abs=0.05)
    assert single.months_of_load == pytest.approx(15.4, abs=0.05)  # as `ledgerctl cost` says
    assert Keeping(1, 2).months == pytest.approx(0.625 / ((69 + 148) * 0.45e-3))
    assert Keeping(38, 1).months < 2


def test_a_goal_that_is_missed_is_told() -> None:
    assert Goal("one", 1.1, 1.0).is_met is Goal("one", 0.8, 1.0, least=0.9).is_met is False
    assert str(Goal("one", 1.1, 1.0)).endswith("MISSED")
    assert str(Goal("one", 0.9, 1.0)).endswith("ok")


def test_months_are_of_all_lanes_and_cheaper_than_marks() -> None:
    rows = {row.name: row for row in every_month(1_000, 30, hand_made(), CLIENT)}
    a = rows["10^4/s over 10^6"]
    assert a.changes == 1e4 * 730 * 3_600
    assert a.puts_and_deletes == pytest.approx(a.changes * 2 * 0.625e-6, rel=0.2)
    assert a.finding < a.before / 50
    assert rows["10^5/s over 10^6, 2 Regions"].commits > 1.5 * rows["10^5/s over 10^6"].commits
    assert rows["C: a meter, 2 Regions"].changes == pytest.approx(1e9)
    hot = rows["1,000/s on one lane"]
    assert hot.commits + hot.reads < hot.before < hot.now  # a lane that is always due was never cheaper to find
    assert "dollars" not in "".join(lines.months(rows.values()))
    assert len(list(lines.keeping())) == 9
