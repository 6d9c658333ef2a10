"""What a shell completes: the names of counters, tables, Regions and profiles.

Rule 1: It is never in the way: what cannot be asked, or takes too long, completes nothing and says nothing.
Rule 2: Counters are those of this Region's directory, whose 256 buckets cost half a read unit each.
Rule 3: bash breaks a word such as `stock:85123A` at its colon, and puts what it is told behind the last one.
"""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace

import typer
from botocore.config import Config

from ledger.lane import directory
from ledgerctl.call import Call, Surroundings

QUICK = Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=2)
UNQUOTED = str.maketrans("", "", "\"'\\")
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


@contextmanager
def with_colons(shell: str | None) -> Iterator[None]:
    """While a shell is told what completes a word: in bash, words are joined at colons, and of an answer it gets the
    rest behind the last one."""
    if shell != "complete_bash":
        yield
        return
    words, at = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    words = words[: int(at) + 1] if at.isdecimal() else words
    whole, said = joined(words), io.StringIO()
    os.environ |= {"COMP_WORDS": "\n".join(whole), "COMP_CWORD": str(len(whole) - 1)}
    meant = whole[-1].translate(UNQUOTED)
    kept = meant[: meant.rfind(":") + 1] if whole[-1] != words[-1] else ""
    try:
        with redirect_stdout(said):
            yield
    finally:
        print("\n".join(answer.removeprefix(kept) for answer in said.getvalue().splitlines()))


def joined(words: list[str]) -> list[str]:
    """The words of a command line that bash has broken at colons."""
    found: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if found and word and ":" in (before[-1:], word[:1]):
            found[-1] += word
        else:
            found.append(word)
    return found
