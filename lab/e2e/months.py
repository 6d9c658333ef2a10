"""Two months with changes about their turn, of which the older one closes in the middle of the run,
by the clock of the machine; the functions have the same.

Rule 1: Changes of both months, by every way and in both Regions, go on past that instant, and some
are sent again by another way elsewhere.
Rule 2: What was ever counted is in the history of each Region once, and nothing else is.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from lab.e2e.deployed import CALLS, QUOTA, REGIONS
from lab.e2e.site import Site, until_empty
from lab.e2e.turn import (
    COUNTED,
    MINUTE,
    QUEUED,
    REFUSED,
    WAYS,
    WEST,
    Asked,
    Turn,
    again,
    counted,
    ms_of,
    wrong_answers,
)
from ledger import Ledger, Period, Receipt, Settings
from ledger.client.message import time_text
from ledger.core.errors import LedgerError, PeriodOver
from ledger.core.running import or_error
from ledger.core.values import Change
from reader import Reader

BEFORE_S, AFTER_S, PAUSE_S, WAIT_MAX_S = 12, 12, 0.4, 120
CEILING = 10_000  # of the base, so that nothing but the month is in the way
ABOUT_THE_TURN = (  # in whose calendar, and when; no zone is further
    ("UTC", -MINUTE),
    ("Etc/GMT+12", WEST - MINUTE),
    ("UTC", MINUTE),
    ("Pacific/Kiritimati", MINUTE - timedelta(hours=14)),
)
PERIOD_OVER = "urn:ledger:problem:period-over"


class Months:
    """One turn. The library has the settings of the deployed functions."""

    def __init__(self, site: Site, turn: Turn) -> None:
        self._site, self._turn = site, turn
        settings = {
            region: Settings.from_env(variables) for region, variables in site.variables().items()
        }
        self._ledgers = {region: Ledger(of) for region, of in settings.items()}
        self._readers = {region: Reader(of) for region, of in settings.items()}
        self._counters = [
            (
                Period("month", zone).name(turn.base(prefix, "turn"), turn.at + moment),
                turn.at + moment,
            )
            for prefix in (CALLS, QUOTA)
            for zone, moment in ABOUT_THE_TURN
        ]
        self._asked: list[Asked] = []
        self._outcomes: dict[str, set[str]] = {}

    def begin(self) -> None:
        """One change of each month by every way, long before the instant."""
        named = {name for name, _ in self._counters}
        months = self._turn.over, self._turn.opened
        expected = {
            f"{self._turn.base(prefix, 'turn')}@{month}"
            for prefix in (CALLS, QUOTA)
            for month in months
        }
        self._site.must("the months of what is sent", named, expected)
        self._ledgers[REGIONS[0]].set_limit(self._turn.base(QUOTA, "turn"), ceiling=CEILING)
        for way, region, (counter, at) in itertools.product(WAYS, REGIONS, self._counters):
            self._ask(way, region, *_pair(counter, f"{way}/{region}/{at}", at, region))

    def turn(self) -> None:
        """Send on both sides of the instant; when it returns, all that was queued is answered."""
        wait_s = (self._turn.closes - datetime.now(UTC)).total_seconds()
        self._site.say(f"  {self._turn.over} takes changes for another {wait_s:.0f} s")
        time.sleep(max(0, wait_s - BEFORE_S))
        with ThreadPoolExecutor(len(WAYS) * len(REGIONS)) as pool:
            for future in [pool.submit(self._send, *by) for by in itertools.product(WAYS, REGIONS)]:
                future.result()
        self._site.wait("changes still wait", lambda: self._site.waiting("changes"), WAIT_MAX_S)
        bases = [self._turn.base(prefix, "turn") for prefix in (CALLS, QUOTA)]
        queued = {each.key: each.change.counter for each in self._asked if each.answer == QUEUED}
        limited = {key for key, counter in queued.items() if counter.startswith(QUOTA)}
        self._site.wait(
            "changes have no outcome",
            lambda: limited - self._site.outcomes(*bases).keys(),
            WAIT_MAX_S,
        )
        self._outcomes = self._site.outcomes(*bases)
        self._site.must(
            "outcomes of what was not sent", self._outcomes.keys() - queued.keys(), set()
        )
        self._site.wrong += wrong_answers(self._asked, self._outcomes, self._turn)
        found = Counter(answer for each in self._asked for answer in each.answers(self._outcomes))
        more = len(again(self._asked, self._outcomes))
        self._site.say(
            f"  {self._turn.over} is over: {dict(found)}; {more} of them counted, and refused again"
        )

    def judge(self) -> None:
        """The history of each counter in each Region; a change that is weeks late counts from
        the next settle on.
        """
        self._site.wrong += until_empty(lambda: list(self._wrong_histories()), WAIT_MAX_S)

    @property
    def truth(self) -> dict[str, int]:
        """Counter -> its value, which is the number of its changes, too."""
        return {
            counter: len(keys) for counter, keys in counted(self._asked, self._outcomes).items()
        }

    def _wrong_histories(self) -> Iterator[str]:
        changes = {(each.change.counter, each.key): each.change for each in self._asked}
        for counter, keys in counted(self._asked, self._outcomes).items():
            tokens = {self._token(changes[counter, key]): key for key in keys}
            for region, reader in self._readers.items():
                listed = Counter(entry.token for entry in reader.history(counter))
                missing = sorted(tokens[token] for token in tokens.keys() - listed.keys())
                wrong = sum(
                    number for token, number in listed.items() if number > 1 or token not in tokens
                )
                balance = self._site.http[region].get("counters", counter)
                if (
                    missing
                    or wrong
                    or (balance["value"], balance["count"]) != (len(keys), len(keys))
                ):
                    found = f"{balance['value']} of {balance['count']}, not {len(keys)}"
                    yield (
                        f"{region} says {counter} = {found}; {wrong} not counted or twice; "
                        f"missing: {missing[:5]}"
                    )

    def _token(self, change: Change) -> str:
        return (
            self._ledgers[REGIONS[0]].prepare(change.counter, change.change, **_named(change)).token
        )

    def _send(self, way: str, region: str) -> None:
        """Two changes after two, and every other time one again that went another way in another
        Region.
        """
        rng, until = (
            random.Random(f"{way} {region}"),
            self._turn.closes + timedelta(seconds=AFTER_S),
        )
        for number in itertools.count():
            counter, at = self._counters[number % len(self._counters)]
            self._ask(way, region, *_pair(counter, f"{way}/{region}/{number}", at, region))
            sent = {each.key for each in self._asked if each.way == way}
            others = [
                each.change
                for each in self._asked
                if each.key not in sent and each.change.region != region
            ]
            if number % 2 and others:
                self._ask(way, region, rng.choice(others))
            if datetime.now(UTC) > until:
                return
            time.sleep(PAUSE_S)

    def _ask(self, way: str, region: str, *changes: Change) -> None:
        began_ms = ms_of(datetime.now(UTC))
        answers = {"http": self._by_http, "queue": self._by_queue, "library": self._by_library}[
            way
        ](region, changes)
        ended_ms = ms_of(datetime.now(UTC))
        pairs = zip(changes, answers, strict=True)
        self._asked += [
            Asked(change, way, region, began_ms, ended_ms, answer) for change, answer in pairs
        ]

    def _by_http(self, region: str, changes: Sequence[Change]) -> list[str]:
        return [self._posted(region, change) for change in changes]

    def _posted(self, region: str, change: Change) -> str:
        assert change.at is not None
        key, at, home = str(change.idempotency_key), time_text(change.at), str(change.region)
        answer = self._site.http[region].add(change.counter, change.change, key, at, home)
        if answer.status < 300:
            return COUNTED
        said = answer.json()
        is_over = (answer.status, said["type"], said.get("since")) == (
            409,
            PERIOD_OVER,
            time_text(self._turn.closes),
        )
        return REFUSED if is_over else f"{answer.status} {said}"

    def _by_queue(self, region: str, changes: Sequence[Change]) -> list[str]:
        self._site.send_many(region, changes)
        return [QUEUED] * len(changes)

    def _by_library(self, region: str, changes: Sequence[Change]) -> list[str]:
        """One by `add`, several by `add_many`."""
        ledger = self._ledgers[region]
        if len(changes) > 1:
            return [self._answer(each) for each in ledger.add_many(changes, pack=True)]
        (change,) = changes
        return [
            self._answer(
                or_error(partial(ledger.add, change.counter, change.change, **_named(change)))
            )
        ]

    def _answer(self, outcome: Receipt | LedgerError) -> str:
        if isinstance(outcome, PeriodOver):
            return REFUSED if outcome.since == self._turn.closes else str(outcome)
        return COUNTED if isinstance(outcome, Receipt) else repr(outcome)


def _pair(counter: str, key: str, at: datetime, region: str) -> list[Change]:
    """Two changes of one time, which may be a pack."""
    return [Change(counter, 1, f"{key}/{number}", at, region) for number in range(2)]


def _named(change: Change) -> Any:
    return {"idempotency_key": change.idempotency_key, "at": change.at, "region": change.region}
