"""`revert`: takes a change back by adding its opposite.

Rule 1: The opposite has the time of the change, so it corrects the day of the change, and a key
that follows from its token, so it counts once, however many people run it and however often.
Rule 2: It goes where the change is, to a lane of the same Region. Of a limited counter the gate
decides.
Rule 3: `revert` looks for the change in the history, and then among the strays, which a settle will
bring there. It does not revert what is in neither.
"""

from typing import Annotated

import typer

from compactor.listing import strays
from ledger.client.message import time_text
from ledger.core import tokens
from ledger.core.checks import to_datetime
from ledger.core.errors import shown
from ledgerctl import show
from ledgerctl.add import key_and_time, sending
from ledgerctl.call import Call
from ledgerctl.command import Counter, agree, command
from ledgerctl.failures import DATA, Wrong
from reader import Entry, Position


@command("revert")
def revert(
    call: Call,
    counter: Counter,
    token: Annotated[
        str, typer.Argument(help="The change's token, as `history` shows it.", metavar="TOKEN")
    ],
    home_region: Annotated[
        str | None, typer.Option(help="The change's Region, if several have one.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take a change back: add its opposite at the change's own time, once; asks first.

    If the counter's limit is in the way, nothing counts and the exit code is 1.
    """
    found = _change_of(call, counter, token, home_region)
    change, key, at = -found.change, f"revert:{token}", time_text(found.at)
    name = key_and_time(call, ["add", counter, str(change)], key, at, found.region)
    was = f"{counter} has {found.change:+,} of {show.moment(found.at)} in {found.region}."
    agree(call, yes, was, f"Add {change:+,} at that time?", "Nothing was added.")
    delta = call.ledger.prepare(
        counter, change, idempotency_key=key, at=found.at, region=found.region
    )
    with sending(name, f"the change of {change:+,} is in {counter}"):
        outcome = call.ledger.apply(delta).outcome
    fields = {"outcome": outcome, "counter": counter, "change": change, "key": key, "at": at}
    call.document(fields | {"token": delta.token, "region": found.region, "reverts": token})
    means = (
        "it is in the table"
        if outcome == "recorded"
        else "it was reverted before, which counts once"
    )
    call.say(f"{outcome}: {change:+,} to {counter}; {means}", style="green")


def _change_of(call: Call, counter: str, token: str, region: str | None) -> Entry:
    """The change with that token.

    Raises Wrong where there is none, or one in each of several Regions.
    """
    if not tokens.is_token(token):
        raise typer.BadParameter(
            f"{shown(token)} is not a token: 26 characters, as `ledgerctl history` shows them."
        )
    found = [each for each in _in_history(call, counter, token) if region in (None, each.region)]
    if not found:
        found = [each for each in _in_strays(call, counter, token) if region in (None, each.region)]
    if not found:
        where = "" if region is None else f" in {region}"
        message = f"{counter!r} has no change with the token {token}{where}. Nothing was added."
        remedy = (
            "`ledgerctl history` shows its tokens; a change of another Region may not be here yet."
        )
        raise Wrong("NoSuchChange", message, remedy, DATA)
    if len(found) > 1:
        regions = " and ".join(each.region for each in found)
        message = (
            f"{counter!r} has a change with the token {token} in each of {regions}. "
            "Nothing was added."
        )
        raise Wrong("SeveralChanges", message, "Name one with --home-region.")
    return found[0]


def _in_history(call: Call, counter: str, token: str) -> list[Entry]:
    """The entries with that token: they come first behind the token below it."""
    regions, below = call.settings.regions, tokens.before(token)
    after = Position(below, max(regions)) if below is not None else None
    until = to_datetime(tokens.time_ms(token) + 1)
    page = call.reader.history_page(counter, until=until, after=after, limit=len(regions))
    return [entry for entry in page.entries if entry.token == token]


def _in_strays(call: Call, counter: str, token: str) -> list[Entry]:
    lanes = call.settings.lanes_of(counter)
    late = [delta for lane in lanes for delta in call.run(strays(lane)) if delta.token == token]
    return [Entry(each.token, each.at, each.change, each.lane.region) for each in late]
