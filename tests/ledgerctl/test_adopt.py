"""The directory of lanes: what the commands say of one that lacks lanes, and `adopt`, which fills it."""

from typing import Any

import pytest

from ledger import Change, items
from ledger.errors import NotAllowed, Throttled, Unavailable
from ledger.lane import directory
from ledger.memory import MemoryTable
from ledger.requests import Item, Key, Put, PutMany, Query, Request, Scan, key_of, keyed
from ledger.values import Delta, Lane
from ledgerctl.adopt import adopting
from tests.ledgerctl.support import A, B, Tables
from tests.support import Region

OLD = [Lane(region, shard, name) for name in ("a", "b", "c") for region, shard in ((A, 0), (A, 3), (B, 0))]
OWN = [lane for lane in OLD if lane.region == A]


@pytest.fixture
def tables() -> Tables:
    """A table of two Regions that is older than its directory; its pages are small."""
    tables = Tables(MemoryTable(page_size=4, lists=False))
    tables.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"": 4}'}
    for item in older():
        tables.table.answer(Put(item))
    return tables


def older() -> list[Item]:
    return [items.delta_item(Delta(lane, f"015JGGKGE064BG4X58772SZH{n:02}", 1)) for lane in OLD for n in range(3)]


def listed(table: Any) -> set[Lane]:
    return {lane for key in table.items if (lane := directory.lane_of(key)) is not None}


def test_every_command_tells_of_an_empty_directory_and_what_to_do(tables: Tables) -> None:
    for command in ("list", "top", "lag", "verify", "export"):
        said = tables.ctl(command)
        assert (said.code, said.out) == (1, "")
        assert f"The directory of {A} {B} names no lane" in said.err
        assert "ledgerctl adopt" in said.err
        assert "--scan" in said.err
        assert tables.ctl(command, "--scan").code == 0


def test_a_scan_says_which_lanes_no_directory_has_and_what_they_hold(tables: Tables) -> None:
    tables.table.answer(Put(directory.item_of(OWN[0])))
    said = tables.ctl("list", "--scan")
    assert "lanes that no directory has: eu-west-1#0#b, eu-west-1#0#c, eu-west-1#3#a" in said.err
    assert "and 3 more" in said.err
    assert "deltas held" in said.out
    first = tables.ctl("list", "--scan", "--json").documents[0]
    assert first == {
        "counter": "a",
        "regions": [A, B],
        "lanes": 3,
        "deltas": 9,
        "unlisted": ["eu-west-1#3#a", "us-east-1#0#a"],
    }
    assert tables.ctl("list", "--json").documents == [{"counter": "a", "regions": [A], "lanes": 1}]
    assert f"the directory of {B} names no lane" in tables.ctl("list").err


def test_a_scan_counts_a_pack_as_one(tables: Tables) -> None:
    tables.environ["LEDGER_SHARDS"] = '{"": 4, "packed": 1}'
    tables.ledger.add_many([Change("packed", 1)] * 3, pack=True)
    assert tables.ctl("list", "--prefix", "packed", "--scan", "--json").documents[0]["deltas"] == 1


def test_what_names_no_lane_is_passed_by_and_told(tables: Tables) -> None:
    tables.table.answer(Put(directory.item_of(OWN[0])))
    tables.table.answer(Put(keyed(Key(f"lane#{A}#7", "0#elsewhere"))))
    said = tables.ctl("list")
    assert (said.code, "1 of 1 counters" in said.out) == (0, True)
    assert "pk='lane#eu-west-1#7' sk='0#elsewhere'" in said.err


def test_adopt_lists_the_lanes_of_its_own_region_and_names_the_others(tables: Tables) -> None:
    said = tables.ctl("adopt")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "lanes that were new there: 6"
    assert f"Run it for the other Regions too: --region {B}." in said.err
    assert listed(tables.table) == set(OWN)
    (other,) = tables.ctl("adopt", "--region", B, "--json").documents
    assert (other["region"], other["new"], other["goes_on_since"], other["other_regions"]) == (B, 3, None, [A])
    assert listed(tables.table) == set(OLD)
    assert [each["lanes"] for each in tables.ctl("list", "--json").documents] == [3, 3, 3]
    assert tables.ctl("adopt", "--json").documents[0]["new"] == 0


def test_a_lane_of_a_region_that_is_not_named_is_told(tables: Tables) -> None:
    tables.table.answer(Put(items.delta_item(Delta(Lane("ap-south-1", 0, "a"), "015JGGKGE064BG4X58772SZHBM", 1))))
    assert "There are lanes of ap-south-1, which --regions does not name." in tables.ctl("adopt").err


class Crash(Exception):
    """The process ended."""


class Stops(Region):
    """Fails at a request, before or after it was answered."""

    left, after = 10**9, False

    def answer(self, request: Request, /) -> Any:
        self.left -= 1
        stops = self.left == 0
        if stops and not self.after:
            raise Crash
        answer = super().answer(request)
        if stops:
            raise Crash
        return answer


@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_was_cut_off_anywhere_is_run_again_and_lists_every_lane(after: bool) -> None:
    whole = Stops(page_size=4)
    whole.store(older())
    done = whole.run(adopting(A))
    assert (done.new, listed(whole)) == (6, set(OWN))
    for stops in range(1, len(whole.asked) + 1):
        table = Stops(page_size=4)
        table.store(older())
        table.left, table.after = stops, after
        with pytest.raises(Crash):
            table.run(adopting(A))
        table.run(adopting(A))
        assert listed(table) == set(OWN)


class Refuses(MemoryTable):
    """Lists the first lane and fails then."""

    failure: BaseException | None = None

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, PutMany) and self.failure is not None:
            first = super().answer(PutMany(request.items[:1]))
            if isinstance(self.failure, KeyboardInterrupt):
                raise self.failure
            return (*first, *(self.failure for _ in request.items[1:]))
        return super().answer(request)


@pytest.mark.parametrize(
    ("failure", "code"),
    [(Throttled("Slower."), 3), (NotAllowed("dynamodb:PutItem is refused."), 3), (KeyboardInterrupt(), 130)],
    ids=["throttled", "refused", "interrupted"],
)
def test_every_failure_is_told_and_the_next_run_lists_what_is_missing(failure: BaseException, code: int) -> None:
    tables = Tables(table := Refuses(page_size=4, lists=False))
    table.failure = failure
    for item in older():
        table.answer(Put(item))
    assert tables.ctl("adopt").code == code
    table.failure = None
    (done,) = tables.ctl("adopt", "--json").documents
    assert (done["new"], listed(table)) == (5, set(OWN))


def test_no_lane_is_passed_by_because_of_what_an_earlier_run_left(tables: Tables) -> None:
    last = {"after_pk": {"S": "zzz"}, "after_sk": {"S": "z"}, "began_ms": {"N": "1"}, "lanes": {"N": "7"}}
    tables.table.answer(Put(keyed(Key(f"sweep#{A}", "adopt"), **last)))
    assert tables.ctl("adopt").out.splitlines()[-1] == "lanes that were new there: 6"
    assert listed(tables.table) == set(OWN)


def test_adopt_puts_what_the_scan_did_not_see_and_asks_for_nothing_else() -> None:
    table = Region()
    table.store(older())
    table.store(map(directory.item_of, OWN[:2]))
    table.run(adopting(A))
    scan, put, *_ = table.asked
    assert isinstance(scan, Scan)
    assert isinstance(put, PutMany)
    assert [*map(key_of, put.items)] == [directory.key_of(lane) for lane in sorted(OWN[2:])]


def test_a_region_that_does_not_answer_is_told() -> None:
    class Down(MemoryTable):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, Query | Scan) or type(request).__name__ == "Together":
                raise Unavailable("No answer.")
            return super().answer(request)

    for command in (("list",), ("list", "--scan"), ("adopt",)):
        assert Tables(Down()).ctl(*command).code == 3
