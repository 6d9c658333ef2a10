"""The sessions in docs/ledgerctl.md are what the commands print."""

from __future__ import annotations

import re

from lab.engines.ministack import Engine
from ledgerctl.app import app
from tests.ledgerctl.page import PAGE, lasting, played


def test_the_sessions_on_the_page_are_what_the_commands_print(engine: Engine) -> None:
    page = PAGE.read_text()
    assert lasting(played(page, engine)) == lasting(page), "`python -m tests.ledgerctl.page` writes it anew"


def test_every_command_that_ends_by_itself_has_a_session_on_the_page() -> None:
    shown = set(re.findall(r"^\$ ledgerctl ([a-z]+)", PAGE.read_text(), re.MULTILINE))
    assert shown == {command.name for command in app.registered_commands}
