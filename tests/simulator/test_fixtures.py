"""The plugin of pytest: its fixtures in runs of their own, as a user's tests have them."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import simulator
from exact_counter import pytest_plugin
from simulator import fixtures
from simulator.clocked import ClockedTable
from tests.docs.pages import DOCS, ROOT, source

PLUGIN = ("-p", pytest_plugin.__name__)
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
"""As in an environment with this plugin and no other, wherever `make dist` was."""


def ran(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_theirs.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=os.environ | ALONE, capture_output=True, text=True, check=False
    )


LAZY = """
import sys

LATE = {"boto3", "botocore", "ledger", "moto", "reader", "simulator.double"}
AT_THE_START = LATE & set(sys.modules)


def test_pytest_starts_without_the_library():
    assert AT_THE_START == set()
"""


def test_the_page_runs_with_the_plugin_which_starts_empty(tmp_path: Path) -> None:
    code = LAZY + source(DOCS / "your-tests.md")
    done = ran(tmp_path, code, *PLUGIN, "-W", "error", "--strict-markers")
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout + done.stderr


TOUR = """
from datetime import UTC, datetime, timedelta

import pytest

from compactor import Compactor
from ledger import Change, Keep, Ledger, Limit, Period, Receipt, Settings, errors
from reader import Reader

LIMITS = {"seats:": Limit(ceiling=100, region="eu-west-1"), "wallet:": Limit(floor=0)}
PERIODS = {"llm:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}
OTHERS = {"periods": PERIODS, "shards": {"votes": 2}, "fold_min": 1}
SETTINGS = Settings(table="shop", region="eu-west-1", limits=LIMITS, **OTHERS)
FIVE = timedelta(minutes=5)
KEY = {"idempotency_key": "01JGGKGE064BG4X58772SZHBM0"}


@pytest.mark.counters(table="shop")
def test_on_moto_the_whole_library_works(moto_counters):
    ledger, reader = (of(SETTINGS, client=moto_counters) for of in (Ledger, Reader))
    assert ledger.add("votes", 1, **KEY).outcome == "recorded"
    assert ledger.add("votes", 1, **KEY).outcome == "replayed"
    for pack in (False, True):
        outcomes = ledger.add_many([Change("votes", 1)] * 30, pack=pack)
        assert {type(each) for each in outcomes} == {Receipt}
    ledger.capture(ledger.hold("seats:gig", 5, expires=FIVE), 2)
    ledger.release(ledger.hold("seats:gig", 5, expires=FIVE))
    ledger.set_limit("seats:gig", ceiling=50)
    with pytest.raises(errors.LimitReached):
        ledger.add("seats:gig", 60)
    ledger.add("wallet:ann", 10)
    assert ledger.transfer("wallet:ann", "wallet:bob", 4, **KEY).outcome == "moved"
    with ledger.hold_all(["seats:gig", "seats:b"], 1, expires=FIVE) as holds:
        assert len(holds) == 2
    month = Period("month").name("llm:key", datetime.now(UTC))
    ledger.add(month, 7)
    compactor = Compactor(SETTINGS, clients={"eu-west-1": moto_counters})
    for _ in range(2):
        assert compactor.run().problems == {}
        counters = ["votes", "seats:gig", "wallet:ann", "wallet:bob", month]
        assert [reader.value(counter) for counter in counters] == [61, 2, 6, 4, 7]
        assert len(list(reader.history("votes"))) == 61
    assert reader.standing("seats:gig").available.up == 48


@pytest.mark.counters(regions=("eu-west-1", "us-east-1"), start=datetime(2030, 1, 1, tzinfo=UTC))
class TestMarks:
    @pytest.mark.counters(limits={"seats:": Limit(ceiling=2, region="us-east-1")}, shards={"c": 3})
    def test_the_nearest_wins(self, counter_ledger, counter_reader, counter_table, simulation):
        settings = counter_ledger.settings
        assert settings == counter_reader.settings
        assert (settings.region, settings.regions) == ("eu-west-1", ("eu-west-1", "us-east-1"))
        assert settings.shards == {"c": 3}
        assert counter_table.now() == datetime(2030, 1, 1, tzinfo=UTC) == simulation.now()
        counter_ledger.add("seats:1", 2)
        assert counter_reader.value("seats:1") == 2
        Ledger(settings, table=simulation.table("eu-west-1"), clock=simulation.clock).add("c", 1)

    def test_a_value_is_read_again_though_the_clock_stands_still(
        self, counter_ledger, counter_reader
    ):
        assert counter_reader.value("seats:1") == 0
        counter_ledger.add("seats:1", 1)
        assert counter_reader.value("seats:1") == 1

    def test_another_test_begins_with_nothing(self, counter_reader):
        assert counter_reader.value("seats:1") == 0


@pytest.mark.counters(region="us-east-1")
def test_a_mark_may_say_the_region_alone(counter_ledger, counter_reader, moto_counters):
    settings = counter_ledger.settings
    assert (settings.region, settings.regions) == ("us-east-1", ("us-east-1",))
    counter_ledger.add("c", 1)
    assert counter_reader.value("c") == 1
    assert moto_counters.meta.region_name == "us-east-1"


@pytest.fixture
def counter_ledger(counter_ledger):
    return counter_ledger


def test_a_users_own_fixture_may_have_the_name(counter_ledger, counter_table):
    counter_ledger.add("c", 1)
    assert counter_table.items
"""


def test_the_fixtures_hold_what_the_page_says(tmp_path: Path) -> None:
    done = ran(tmp_path, TOUR, *PLUGIN, "-W", "error", "--strict-markers")
    assert (done.returncode, "6 passed" in done.stdout) == (0, True), done.stdout + done.stderr


WRONG = """
import sys

import pytest

sys.modules["moto"] = None


def test_without_moto(moto_counters): ...


@pytest.mark.counters("eu-west-1")
def test_by_position(counter_table): ...


@pytest.mark.counters(limit=3)
def test_a_setting_that_is_none(counter_ledger): ...


@pytest.mark.counters(seeds=3)
def test_of_a_simulation_neither(simulation): ...
"""


def test_what_a_test_says_wrongly_is_named(tmp_path: Path) -> None:
    said = ran(tmp_path, WRONG, *PLUGIN).stdout
    for text in (
        fixtures.NEEDS_MOTO,
        "@pytest.mark.counters takes settings by name.",
        "@pytest.mark.counters has no setting 'limit'",
        "@pytest.mark.counters has no setting 'seeds'",
        "4 errors",
    ):
        assert text in said, said


def test_a_table_has_the_time_that_a_test_gives_it() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    table = ClockedTable(start)
    table.wait(timedelta(seconds=1.5))
    assert (table.now(), table.clock()) == (start + timedelta(seconds=1.5), 1893456001500)
    for wrong in (timedelta(-1), 5, None):
        with pytest.raises(ValueError, match="timedelta of 0 or more"):
            table.wait(wrong)  # type: ignore[arg-type]
    assert abs(ClockedTable().now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_every_name_of_the_simulator_is_there() -> None:
    for name in simulator.__all__:
        assert getattr(simulator, name).__module__.startswith("simulator.")
    with pytest.raises(AttributeError, match=r"module 'simulator' has no attribute 'nothing'"):
        simulator.nothing  # type: ignore[attr-defined]


def test_the_wheel_has_the_plugin_and_the_page_its_fixtures() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert f'[project.entry-points.pytest11]\nexact_counter = "{PLUGIN[1]}"' in project
    made = re.findall(r"@pytest\.fixture\ndef (\w+)", Path(fixtures.__file__).read_text())
    page = (DOCS / "your-tests.md").read_text()
    (rows,) = re.findall(r"^\| fixture \|.*\n(?:\|.*\n)+", page, re.M)
    assert sorted(made) == sorted(set(re.findall(r"`(\w+)`", rows)) & {*made})
    assert len(made) == 5
    assert {*pytest_plugin.__all__} == {*made, "pytest_configure"}
