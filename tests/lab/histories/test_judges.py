"""The judges can go red, and so can the commands that play them: each rule finds what no other
one does.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import typer

from lab.histories import __main__ as simulate
from lab.histories import mistakes
from lab.histories.kinds import Kind
from lab.histories.mistakes import JUDGED, ROOT, Mistake, Place, judges, known_by
from lab.histories.rules import JUDGES, Row, rows, rules_in, rules_of
from lab.histories.stage.stage import Played

ROWS = rows()
ALONE = [row for row in ROWS if row.is_alone]


@pytest.mark.parametrize("judge", JUDGES)
def test_each_rule_of_a_judge_has_a_row(judge: str) -> None:
    rules = [rule.says for rule in rules_of(judge)]
    assert len(rules) == len(set(rules)) > 0, (
        "two rules say the same, so a row does not say which one it is of"
    )
    assert rules == [row.rule.says for row in ROWS if row.rule.judge == judge]


def test_each_row_has_a_mistake_and_nothing_is_planted_for_none() -> None:
    assert {row.mistake for row in ROWS if row.is_alone} <= JUDGED.keys()
    assert all(len(row.at) > 10 for row in ROWS if not row.is_alone), "what finds the same"
    ruled = [mistake for planted in mistakes.RULED.values() for mistake in planted]
    assert {mistake.name for mistake in ruled} <= {row.mistake for row in ROWS}
    for place in (place for mistake in ruled for place in mistake.places):
        assert place.planted((ROOT / place.file).read_text("utf-8"))


def test_a_judge_without_a_rule_lacks_it_alone() -> None:
    for judge in JUDGES:
        rules = [rule.says for rule in rules_of(judge)]
        for rule in rules_of(judge):
            code = rule.crippled((ROOT / rule.file).read_text("utf-8"))
            compile(code, rule.file, "exec")
            assert [left.says for left in rules_in(judge, code)] == [
                says for says in rules if says != rule.says
            ]


SOON = {  # some are played in every run; `make mistakes ARGS=--rules` plays all
    ("judges/gates", "… is decided twice: …, …"),
    ("judges/gates_end", "the history of … differs from what was decided"),
    ("judges/periods", "… items never retire, such as …"),
    ("judges/periods", "… takes a change"),
    ("judges/sagas", "… has …, not …"),
    ("judges/service", "crossing … is … at …"),
}


@pytest.mark.parametrize("row", [row for row in ROWS if (row.rule.judge, row.rule.says) in SOON])
def test_without_its_rule_a_judge_finds_nothing(row: Row) -> None:
    assert known_by(row) == ""


# -- what the commands end with

NOTHING = Mistake(
    "nothing", "lanes", [Place("lab/histories/kinds.py", ["KINDS = {"], ["KINDS = {"])]
)
FOUND = Mistake(
    "a delta counts twice",
    "lanes",
    [Place("lab/histories/judges/checker.py", ["    if value < 0:"], ["    if value > 0:"])],
)


@pytest.mark.parametrize(
    ("planted", "code", "said"),
    [
        ([FOUND], 0, "1 of 1 planted mistakes found"),
        ([NOTHING], 1, "NOT FOUND"),
        ([NOTHING, FOUND], 1, "1 of 2 planted mistakes found"),
    ],
)
def test_make_mistakes_fails_where_one_is_not_found(
    planted: list[Mistake],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(mistakes, "HISTORIES_MAX", 2)
    with pytest.raises(SystemExit) as ended:
        mistakes.main(planted)
    assert ended.value.code == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("amiss", ["", "found without it"])
def test_the_rules_fail_where_another_one_finds_it_too(
    amiss: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mistakes, "known_by", lambda row: amiss if row == ALONE[1] else "")
    with pytest.raises(SystemExit) as ended:
        judges(ALONE[:3])
    assert ended.value.code == (1 if amiss else 0)
    assert f"{2 if amiss else 3} of 3 rules" in capsys.readouterr().out


def test_a_row_is_wrong_if_another_rule_finds_its_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = ALONE[0]
    for alone, crippled, amiss in (
        ("", "", "finds"),
        ("seed", "seed", "found without it"),
        ("seed", "", ""),
    ):
        answers = {None: (alone, "wrong"), row.rule: (crippled, "wrong")}
        monkeypatch.setattr(
            mistakes, "catch", lambda _, histories, without=None, told=answers: told[without]
        )
        assert (amiss in known_by(row)) if amiss else known_by(row) == ""


def plays(happened: Counter[str], wrong_at: int | None = None) -> Kind:
    """Histories of one kind; that of one seed is wrong."""

    def play(choices: object, **_: object) -> Played:
        wrong = (
            ["a change counts twice"]
            if getattr(choices, "seed", None) == wrong_at is not None
            else []
        )
        return Played(wrong, 3, happened)

    return Kind(play, ("deltas",))


ENOUGH = Counter(dict.fromkeys(simulate.LEAST, 10))


@pytest.mark.parametrize(
    ("happened", "wrong_at", "code", "said"),
    [
        (ENOUGH, None, 0, "0 violations"),
        (ENOUGH, 107, 1, "seed 107 goes wrong, a history of lanes: a change counts twice"),
        (ENOUGH - Counter({"moved": 10}), None, 1, "too little happened: moved"),
    ],
)
def test_make_simulate_fails_at_a_wrong_or_empty_history(
    happened: Counter[str],
    wrong_at: int | None,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(simulate, "KINDS", {"lanes": plays(happened, wrong_at)})
    monkeypatch.setattr(simulate, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(simulate, "Drawn", lambda seed: SimpleNamespace(seed=seed))
    try:
        simulate.main(seeds=100, first=50, processes=1)
        ended = 0
    except typer.Exit as left:
        ended = left.exit_code
    assert ended == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shown", "code"), [("WRONG: a change counts twice", 1), ("3 ms  a put", 0)]
)
def test_a_history_that_is_shown_and_wrong_fails(
    shown: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "lines", lambda kind, seed: ["0 ms  a put", shown])
    with pytest.raises(typer.Exit) as ended:
        simulate.main(seed=7)
    assert ended.value.exit_code == code
