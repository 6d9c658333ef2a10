"""A month that closes in the middle of the run, by the clock of this machine, which the functions
have, too: changes about that instant, and a quota.

Rule 1: Changes of the older and of the newer month go on past the instant, by HTTP and through SQS,
in both Regions.
Rule 2: Of the newer month only so much more is sold than its limit as the older one leaves, up to
CARRY; callers try to take more. What a hold gives back after the older month closed is carried
then, once.
Rule 3: What is of no month, of another month, or of one that is over is refused by both ways, and
counts nowhere.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.e2e.deployed import CALLS, QUOTA, REGIONS, TABLE
from lab.e2e.seats import REFUSED as LIMIT_REACHED
from lab.e2e.site import Site, until_empty
from lab.e2e.turn import (
    CARRY,
    COUNTED,
    MINUTE,
    QUEUE,
    REFUSED,
    WAYS,
    WEST,
    Attempt,
    Turn,
    kind_of,
    ms_of,
    retires,
    wrong_answers,
)
from ledger.client.message import dumps, time_text
from ledger.core.values import Change

HERE, THERE = REGIONS
BEFORE_S, AFTER_S, PAUSE_S, WAIT_MAX_S = 12, 12, 0.4, 120
EARLY = 4  # pairs by each way in each Region, long before the instant: of each flow and month
PLENTY = 10_000  # a ceiling that is in nobody's way
OLDER, NEWER = 12, 8  # the limit of the quota when each month opens
# of the older month; the first hold is captured in part, the other one released
USED, HELD, CAPTURED = 4, (3, 2), 1
# first; then what is left to CARRY, because the holds give back more
CARRIED = OLDER - USED - sum(HELD)
# tried beyond what is free; seconds until a process reads again what is left
MORE, SENDERS, FORGOTTEN_S = 4, 4, 1.1
# of items, seen at one time or another
KINDS = {"delta", "pack", "checkpoint", "segment", "gate", "lane"}
PROBLEM = "urn:ledger:problem:"


class Month:
    """One turn: `begin`, `turn`, `end`, and `judge` when all is folded and cleaned."""

    def __init__(self, site: Site, turn: Turn) -> None:
        self._site, self._http, self._turn = site, site.http, turn
        self._variables = site.variables()
        self._flows = [turn.base(prefix, "flow") for prefix in (CALLS, QUOTA)]
        self._quota = turn.base(QUOTA, "seats")
        self._older, self._newer = f"{self._quota}@{turn.over}", f"{self._quota}@{turn.opened}"
        self._numbers, self._regions = itertools.count(), itertools.cycle(REGIONS)
        self._kinds = set[str]()
        self._attempts: list[Attempt] = []
        self._holds: list[dict[str, Any]] = []
        self.letters: dict[str, set[str]] = {region: set() for region in REGIONS}

    def begin(self) -> None:
        """While the older month takes changes: some of each month, and both open with their
        limits. The newer one is sold out.
        """
        # The engine's CloudFormation leaves the time to live out.
        self._ledgerctl("init")
        self._ledgerctl("limit", self._flows[1], "--ceiling", str(PLENTY))
        for way, region, number in itertools.product(WAYS, REGIONS, range(EARLY)):
            self._send_pair(way, region, number)
        self._ledgerctl("limit", self._quota, "--ceiling", str(OLDER))
        at = self._turn.at - MINUTE
        regions = (HERE, THERE) * (USED // 2)
        used = [self._post(self._seat(self._older, at, region))[0] for region in regions]
        self._site.must("used of the older month", used, [201] * USED)
        lasts_s = int((datetime.now(UTC) - at).total_seconds()) + 3_600
        for region, amount in zip((THERE, HERE), HELD, strict=True):
            hold = self._http[region].hold(self._older, amount, lasts_s, region, time_text(at))
            self._holds.append(hold)
        self._ledgerctl("limit", self._quota, "--ceiling", str(NEWER))
        self._sell(NEWER + CARRIED)
        self._site.stands("before", self._older, USED, OLDER, held=sum(HELD), carried=CARRIED)
        self._site.stands("before", self._newer, NEWER + CARRIED, NEWER + CARRIED)

    def turn(self) -> None:
        """Send on both sides of the instant; when it returns, all that was queued is answered."""
        wait_s = (self._turn.closes - datetime.now(UTC)).total_seconds()
        self._site.say(f"  {self._turn.over} takes changes for another {wait_s:.0f} s")
        time.sleep(max(0, wait_s - BEFORE_S))
        with ThreadPoolExecutor(len(WAYS) * len(REGIONS)) as pool:
            for future in [pool.submit(self._send, *by) for by in itertools.product(WAYS, REGIONS)]:
                future.result()
        self._site.wait("changes still wait", lambda: self._site.waiting("changes"), WAIT_MAX_S)
        queued = [attempt for attempt in self._attempts if attempt.way == QUEUE]
        limited = {each.key for each in queued if each.change.counter.startswith(QUOTA)}
        outcomes = self._site.wait_for_outcomes(limited, *self._flows)
        unknown = outcomes.keys() - {attempt.key for attempt in queued}
        self._site.must("outcomes of what was not sent", unknown, set())
        self._attempts = [attempt.answered(outcomes) for attempt in self._attempts]
        self._site.wrong += wrong_answers(self._attempts, self._turn)
        found = Counter(answer for attempt in self._attempts for answer in attempt.answers)
        self._site.say(f"  {self._turn.over} is over: {dict(found)}")

    def end(self) -> None:
        """When the older month takes no more changes: its holds give back what is carried, and
        nothing else comes.
        """
        for region, status in ((THERE, 201), (HERE, 200)):
            end = self._http[region].end
            found = (
                end(self._holds[0], "capture", amount=CAPTURED).status,
                end(self._holds[1], "release").status,
            )
            self._site.must(f"{region}: capture and release", found, (status, 204))
        self._sell(CARRY - CARRIED)
        self._refused()
        self._site.stands("after", self._older, USED + CAPTURED, OLDER, carried=CARRY)
        self._site.stands("after", self._newer, NEWER + CARRY, NEWER + CARRY)
        self._site.wrong += self._wrong_items()

    def judge(self) -> None:
        """What each month holds in each Region, and what the table will delete."""
        # A change that is weeks late counts from the next settle on.
        self._site.wrong += until_empty(lambda: list(self._wrong_months()), WAIT_MAX_S)
        self._site.wrong += self._wrong_items()
        self._site.must("kinds of items that retire and were not seen", KINDS - self._kinds, set())
        stacks = self._site.aws("cloudformation")[HERE]
        stack = stacks.get_template(StackName=f"{TABLE}-table")["TemplateBody"]
        table = (json.loads(stack) if isinstance(stack, str) else stack)["Resources"]["Table"]
        found = table["Properties"].get("TimeToLiveSpecification")
        wanted = {"AttributeName": "retires", "Enabled": True}
        self._site.must("time to live in the table's stack", found, wanted)
        for region, client in self._site.aws("dynamodb").items():
            said = client.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
            # AWS takes an hour
            on = said.get("AttributeName"), said["TimeToLiveStatus"] in ("ENABLING", "ENABLED")
            self._site.must(f"{region}: time to live", on, ("retires", True))

    def _send(self, way: str, region: str) -> None:
        until = self._turn.closes + timedelta(seconds=AFTER_S)
        for number in itertools.count(EARLY):
            self._send_pair(way, region, number)
            if datetime.now(UTC) > until:
                return
            time.sleep(PAUSE_S)

    def _send_pair(self, way: str, region: str, number: int) -> None:
        """Two changes of one time, which may be a pack; of each month and flow in turn."""
        month, at = (
            (self._turn.opened, self._turn.at + MINUTE)
            if number % 2
            else (self._turn.over, self._turn.at - MINUTE)
        )
        counter, key = f"{self._flows[number // 2 % 2]}@{month}", f"{way}/{region}/{number}"
        pair = [Change(counter, 1, f"{key}/{which}", at, region) for which in range(2)]
        began_ms = ms_of(datetime.now(UTC))
        if way == QUEUE:
            self._site.send_many(region, pair)
            answers = [frozenset[str]()] * len(pair)
        else:
            answers = [frozenset({self._posted(change)}) for change in pair]
        ended_ms = ms_of(datetime.now(UTC))
        self._attempts += [
            Attempt(change, way, region, began_ms, ended_ms, answer)
            for change, answer in zip(pair, answers, strict=True)
        ]

    def _posted(self, change: Change) -> str:
        status, said, _ = self._post(change)
        if status < 300:
            return COUNTED
        wanted = 409, f"{PROBLEM}period-over", time_text(self._turn.closes)
        is_over = (status, said["type"], said.get("since")) == wanted
        return REFUSED if is_over else f"{status} {said}"

    def _post(self, change: Change) -> tuple[int, dict[str, Any], int]:
        """Status, body, and in how many seconds to come again."""
        answer = self._http[str(change.region)].add(change)
        return answer.status, answer.json(), int(answer.headers.get("Retry-After", 0))

    def _seat(self, counter: str, at: datetime, region: str) -> Change:
        return Change(counter, 1, f"seat/{next(self._numbers)}", at, region)

    def _sell(self, free: int) -> None:
        """Ask for more than is free at once, then one by one until nothing is left, or too much
        was sold.
        """
        with ThreadPoolExecutor(SENDERS) as pool:
            sold = sum(pool.map(lambda _: self._is_sold(), range(free + MORE)))
        time.sleep(FORGOTTEN_S)
        while sold <= free and self._is_sold():
            sold += 1
        self._site.must(f"sold of {self._newer}", sold, free)
        self._site.say(f"  sold of {self._newer}: {sold}")

    def _is_sold(self) -> bool:
        """By HTTP. A refusal says when the next month begins."""
        seat = self._seat(self._newer, self._turn.at + MINUTE, next(self._regions))
        status, said, wait_s = self._post(seat)
        if status == 201:
            return True
        late_s = abs(wait_s - max(1, (self._turn.next - datetime.now(UTC)).total_seconds()))
        found = status, said.get("type"), said.get("resets_at"), late_s < 60
        wanted = 409, LIMIT_REACHED, time_text(self._turn.next), True
        self._site.must(f"{seat.region}: a refusal", found, wanted)
        return False

    def _refused(self) -> None:
        """In each Region by HTTP, and through SQS, where what no retry can help is a dead
        letter.
        """
        turn, long_over = self._turn.at, self._turn.at - timedelta(days=1_000)
        over = set[str]()
        for region, (counter, at, status, problem) in itertools.product(
            REGIONS,
            (
                (self._quota, turn, 422, "invalid-request"),
                (self._older, turn + WEST, 422, "invalid-time"),
                (self._newer, turn - timedelta(hours=14, milliseconds=1), 422, "invalid-time"),
                (self._older, turn - MINUTE, 409, "period-over"),
                (f"{self._quota}@{long_over:%Y-%m}", long_over, 409, "period-over"),
            ),
        ):
            found, said, _ = self._post(self._seat(counter, at, region))
            wanted = status, f"{PROBLEM}{problem}"
            self._site.must(f"{region}: {counter} at {at}", (found, said.get("type")), wanted)
            seat = self._seat(counter, at, region)
            self._site.send(region, [dumps(seat)])
            if status == 422:
                self.letters[region].add(dumps(seat))
            else:
                over.add(str(seat.idempotency_key))
        outcomes = self._site.wait_for_outcomes(over, self._quota)
        self._site.must("outcomes of what is over", outcomes, {key: {REFUSED} for key in over})

    def _wrong_months(self) -> Iterator[str]:
        """Months whose value, number of changes, ceiling, and what is left and carried are not
        what was answered.
        """
        Row = tuple[int, int, int | None, int | None, int | None]
        wanted: dict[str, Row] = {
            self._older: (n := USED + CAPTURED, n, OLDER, OLDER - n - CARRY, CARRY),
            self._newer: (n := NEWER + CARRY, n, n, 0, None),
        }
        counted = Counter(
            attempt.change.counter for attempt in self._attempts if COUNTED in attempt.answers
        )
        for counter, n in counted.items():
            ceiling = PLENTY if counter.startswith(QUOTA) else None
            wanted[counter] = n, n, ceiling, None if ceiling is None else ceiling - n, None
        for region, client in self._http.items():
            found: dict[str, Row] = {}
            for base in (*self._flows, self._quota):
                for row in client.get("periods", base, last="3")["periods"]:
                    up = row["available"] and row["available"]["up"]
                    of_all = row["value"], row["count"], row["ceiling"], up, row.get("carried")
                    found |= {row["counter"]: of_all} if row["value"] else {}
            if found != wanted:
                yield f"{region} has months {found}, not {wanted}"

    def _wrong_items(self) -> Iterator[str]:
        """Items of months that retire at another time than they must, and others that retire."""
        periods = json.loads(self._variables[HERE]["LEDGER_PERIODS"])
        for region, table in self._site.aws("dynamodb").items():
            pages = table.get_paginator("scan").paginate(TableName=TABLE)
            for item in itertools.chain.from_iterable(page["Items"] for page in pages):
                pk, sk = item["pk"]["S"], item["sk"]["S"]
                retires_s = retires(pk, sk, periods, self._turn)
                wanted = retires_s and {"N": str(retires_s)}
                if wanted:
                    self._kinds.add(kind_of(pk, sk))
                if item.get("retires") != wanted:
                    yield f"{region}: {pk} {sk} retires {item.get('retires')}, not {wanted}"

    def _ledgerctl(self, *arguments: str) -> None:
        """Raises CalledProcessError."""
        environ = os.environ | self._variables[HERE]
        command = [sys.executable, "-m", "ledgerctl", *arguments, "--json"]
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
