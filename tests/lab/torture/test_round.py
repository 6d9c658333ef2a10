"""What a run of torture has to have done before it is right."""

from collections import Counter

import pytest
import typer

from lab.torture import __main__ as torture
from lab.torture.round import Outcome

DONE = Outcome(
    operations=Counter({"add ok": 1_600, "add fail": 10, "read ok": 400}),
    faults=Counter({"requests": 6_000, "conflict": 800}),
    events=Counter({"changes acknowledged": 1_500, "of them owed to strong reads": 700, "cleaned, as told": 30}),
)


def test_a_run_that_did_what_was_asked_lacks_nothing() -> None:
    assert DONE.lacks(2_000) == []


def test_a_run_that_was_cut_short_or_whose_library_refuses_all_lacks_what_it_did_not_do() -> None:
    cut = Outcome(operations=Counter({"add ok": 99, "read ok": 20}), events=Counter({"changes acknowledged": 99}))
    refused = Outcome(operations=Counter({"add fail": 2_000}), faults=DONE.faults)
    assert [line.split(":")[0] for line in cut.lacks(2_000)] == [
        *("operations", "changes acknowledged", "of them owed to strong reads", "cleaned, as told", "faults"),
    ]
    assert [line.split(":")[0] for line in refused.lacks(2_000)] == [
        *("changes acknowledged", "of them owed to strong reads", "cleaned, as told", "read ok"),
    ]


def test_a_run_that_lacks_something_ends_with_1_and_says_what(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torture, "play", lambda *_: Outcome())
    monkeypatch.setattr(torture, "end_on_signals", lambda: None)
    monkeypatch.setattr(torture, "CREDENTIALS", {})
    with pytest.raises(typer.Exit) as exit:
        torture.main(operations=2_000, seed=1)
    assert exit.value.exit_code == 1
    assert "operations: 0, and a run of 2,000 has at least 2,000" in capsys.readouterr().out
