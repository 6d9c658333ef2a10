"""What a shell completes: the names of counters, tables, Regions and profiles.

Rule 1: It is never in the way: what cannot be asked, or takes too long, completes nothing and says nothing.
Rule 2: Counters are those of this Region's directory, whose 256 buckets cost half a read unit each.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import typer
from botocore.config import Config

from ledger.lane import directory
from ledgerctl.call import Call, Surroundings

QUICK = Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=2)
OPTIONS = ("table", "region", "regions", "endpoint_url", "profile")


def completes(names: Callable[[Call], Iterable[str]]) -> Callable[[typer.Context, str], list[str]]:
    """For Typer: those of the names that begin as what was typed, by the options that were typed before it."""

    def found(ctx: typer.Context, incomplete: str) -> list[str]:
        with suppress(Exception):
            options = {name: ctx.params.get(name) for name in OPTIONS} | {"json": True}
            call = Call(replace(ctx.obj or Surroundings(), config=QUICK), options)
            return sorted(name for name in set(names(call)) if name.startswith(incomplete))
        return []

    return found


def _counters(call: Call) -> Iterable[str]:
    return [lane.counter for lane in call.run(directory.listed(call.settings.region))]


def _tables(call: Call) -> Iterable[str]:
    named = call.of_table("any-name")  # the settings want one, the request does not
    answer = named.ask(named.settings.region, "list_tables")
    names: list[str] = answer["TableNames"]
    return names


def _regions(call: Call) -> Iterable[str]:
    ours = (call.surroundings.environ.get("LEDGER_REGIONS") or "").split(",")
    return [each.strip() for each in ours if each.strip()] or call.session.get_available_regions("dynamodb")


def _profiles(call: Call) -> Iterable[str]:
    return call.session.available_profiles


counters, tables, regions, profiles = map(completes, (_counters, _tables, _regions, _profiles))
