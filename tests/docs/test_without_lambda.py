"""The process that docs/without-lambda.md runs instead of the service: what it does, what it prints, how it ends."""

import json
import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from compactor import Report
from ledger import Ledger, Settings
from tests.docs.conftest import Account
from tests.docs.pages import ROOT, run

PAGE = ROOT / "docs" / "without-lambda.md"


def test_the_process_compacts_tells_what_it_did_and_fails_where_somebody_must_look(
    account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in re.findall(r"^((?:LEDGER|AWS)_\w+)=(\S+)$", PAGE.read_text(), re.MULTILINE):
        monkeypatch.setenv(name, "eu-west-1" if name == "LEDGER_REGIONS" else value)  # moto replicates nothing
    monkeypatch.setenv("LEDGER_FOLD_MIN", "2")
    main = run(PAGE)["main"]
    minute_ago = datetime.now(UTC) - timedelta(minutes=1)
    for number in range(3):
        Ledger(Settings.from_env()).add("stock:l", -1, idempotency_key=str(number), at=minute_ago)
    assert main() == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["lanes"], done["folded"], done["problems"]) == (1, 3, {})
    wrong = Ledger(Settings.from_env(shards={"stock:": 4}))
    for number in range(9):
        wrong.add("stock:l", -1, idempotency_key=f"wrong/{number}", at=minute_ago)
    assert main() == 1
    problem, *_ = json.loads(capsys.readouterr().out)["problems"].values()
    assert problem.startswith("LaneUnread")


def test_what_is_alarmed_on_is_in_a_report() -> None:
    told = set(re.findall(r"^\|.*?`(\w+)`", PAGE.read_text().partition("## What to alarm on")[2], re.MULTILINE))
    assert told <= {field.name for field in fields(Report)}
