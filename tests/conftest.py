"""What every folder of tests may use: a real engine as a process, and names of tables in it.

A test that a program is missing for fails where CI is set. Elsewhere it is skipped, and the end of
the run lists what was not run.
"""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from lab.engines.dynamodb_local import DynamoDBLocal, installed, missing
from lab.engines.ministack import Engine, EngineMissing

# The same examples in every run; `make test ARGS=--hypothesis-profile=long` draws more, and new
# ones.
settings.register_profile(
    "short",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long", settings.get_profile("short"), derandomize=False, max_examples=500
)
settings.load_profile("short")


def pytest_itemcollected(item: pytest.Item) -> None:
    """The numbers of docs/assumptions.md that a test shows, for the report of `make smoke`."""
    item.user_properties += [
        ("shows", number) for mark in item.iter_markers("shows") for number in mark.args
    ]


ROOMS = ("ledger", "reader", "compactor", "budgets", "contract")
"""The folders of tests whose coverage counts: what another test runs on its way is not tested."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test COV=--cov` runs every test, and measures what those of the rooms cover."""
    if config.pluginmanager.has_plugin("_cov"):
        rooms = {Path(__file__).parent / room for room in ROOMS}
        for item in items:
            if rooms.isdisjoint(item.path.parents):
                item.add_marker("no_cover")


NOT_RUN = "NOT RUN: "


def not_run(why: str) -> NoReturn:
    """What a test needs is not on this machine."""
    if os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    pytest.skip(NOT_RUN + why)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    reasons = (report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    lacking = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    for reason, tests in lacking.items():
        if reason.startswith(NOT_RUN):
            terminalreporter.write_line(f"{reason} ({tests} tests)")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What a test that is a coroutine, marked `anyio`, runs on."""
    return "asyncio"


@pytest.fixture
def unreadable_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process's credentials come from a program whose answer is no JSON."""
    file = tmp_path / "config"
    file.write_text("[default]\ncredential_process = /bin/echo 'not JSON'\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An embedded DynamoDB."""
    try:
        Engine().executable()
    except EngineMissing as error:
        not_run(str(error))
    with Engine() as running:
        yield running


@pytest.fixture(scope="session")
def table_names() -> Iterator[str]:
    """Names of tables that no other test has."""
    return (f"counters-{n}" for n in count())


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[DynamoDBLocal]:
    """As `make contract` got it; where CI is set it is got now."""
    if installed() is None and missing():
        not_run(f"DynamoDB Local needs a JDK and Maven. Put on PATH: {', '.join(missing())}")
    if installed() is None and not os.environ.get("CI"):
        not_run("DynamoDB Local is not here; `make contract` gets it")
    with DynamoDBLocal() as running:
        yield running
