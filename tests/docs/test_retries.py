"""The retry contract: its Python runs, and its table of answers names the errors as their docstrings describe them."""

import re

from ledger import client, errors
from tests.docs.pages import ROOT, run

PAGE = ROOT / "docs" / "retries.md"
ANSWERS = PAGE.read_text().partition("## What an attempt answered")[2].partition("\n## ")[0]
OF_OTHERS = {"ReadTooSlow", "LaneDamaged", "LaneUnread", "NotYetReplicated", "GaveUp"}


def test_the_python_of_the_contract_prints_what_its_comments_say() -> None:
    run(PAGE)


def test_every_error_of_an_add_has_its_row_and_the_row_says_whether_anything_was_written() -> None:
    written: dict[str, str] = {}
    for line in ANSWERS.splitlines():
        if line.startswith("| `") and line.count("|") == 4:
            _, what, whether, _, _ = line.split("|")
            written |= {name: whether.strip() for name in re.findall(r"`([A-Z]\w+)`", what)}
    leaves = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.LedgerError) and not kind.__subclasses__()
    }
    leaves -= {name for name in leaves if issubclass(getattr(errors, name), errors.InvalidInput)}
    assert leaves - OF_OTHERS == set(written) - {"InvalidInput", "ChangeQueue"}
    for name in set(written) - {"ChangeQueue"}:
        says_no = "othing was written" in str(getattr(errors, name).__doc__)
        assert written[name].startswith("no") == says_no, name


def test_the_tries_of_boto3_are_those_of_the_client() -> None:
    assert f"| one put, up to {client.ATTEMPTS} times in all |" in PAGE.read_text()
