"""A quota of two months: a limit set for each before it opens, what the older one leaves carried
into the newer one, and the judge. The older month is over in every zone; it takes changes until
`months` has turned it.

Rule 1: Each limit is set for the base; only so much more is sold of the newer month as the older
one leaves, up to CARRY, exactly, whoever comes first in whichever Region; callers try to take more.
Rule 2: A hold of the older month ends after it takes no more changes; what it gives back is carried
then, once.
Rule 3: What is of no month, of another month, or of one that is long over is refused by every way,
and counts nowhere.
Rule 4: All items of months say when they retire, no others do, and the table's time to live is
that. The engine's CloudFormation leaves it out, so `ledgerctl init` turns it on; from then on the
engine deletes what has retired.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.e2e.deployed import CALLS, QUOTA, REGIONS, TABLE
from lab.e2e.months import CEILING, WAIT_MAX_S
from lab.e2e.seats import REFUSED as LIMIT_REACHED
from lab.e2e.site import Site
from lab.e2e.turn import CARRY, MINUTE, WEST, Turn
from ledger.client.message import dumps, time_text
from ledger.core.values import Change

HERE, THERE = REGIONS
OLDER, NEWER = 12, 8  # the limit of the base when each month opens
# of the older month; the first hold is captured in part, the other one released
USED, HELD, CAPTURED = 4, (3, 2), 1
# first; then what is left to CARRY, because the holds give back more
CARRIED = OLDER - USED - sum(HELD)
# tried beyond what is free; seconds until a process reads again what is left
MORE, SENDERS, FORGOTTEN_S = 4, 4, 1.1
CLOCKS = timedelta(days=30)
# of items, seen at one time or another
KINDS = {"delta", "pack", "checkpoint", "segment", "gate", "lane"}
OF_A_MONTH = re.compile(rf"((?:{CALLS}|{QUOTA})\d+:)[^#]*@(\d{{4}}-\d\d)")
PROBLEM = "urn:ledger:problem:"


class Quota:
    """One story."""

    def __init__(self, site: Site, turn: Turn) -> None:
        self._site, self._http, self._turn = site, site.http, turn
        self._variables = site.variables()
        self.base = turn.base(QUOTA, "seats")
        self._older, self._newer = f"{self.base}@{turn.over}", f"{self.base}@{turn.opened}"
        self._numbers, self._kinds = itertools.count(), set[str]()
        self._holds: list[dict[str, Any]] = []
        self.letters: dict[str, set[str]] = {region: set() for region in REGIONS}

    def begin(self) -> None:
        """While the older month takes changes: both open with their limits, and the newer one is
        sold out.
        """
        self._ledgerctl("init")
        self._ledgerctl("limit", self.base, "--ceiling", str(OLDER))
        used = [
            self._add(self._older, self._turn.at - MINUTE, region)[0]
            for region in (HERE, THERE) * (USED // 2)
        ]
        self._site.must("used of the older month", used, [201] * USED)
        at = self._turn.at - MINUTE
        lasts_s = int((datetime.now(UTC) - at).total_seconds()) + 3_600
        for region, amount in zip((THERE, HERE), HELD, strict=True):
            self._holds.append(
                self._http[region].hold(self._older, amount, lasts_s, region, time_text(at))
            )
        self._ledgerctl("limit", self.base, "--ceiling", str(NEWER))
        self._sell(NEWER + CARRIED)
        self._site.stands("before", self._older, USED, OLDER, held=sum(HELD), carried=CARRIED)
        self._site.stands("before", self._newer, NEWER + CARRIED, NEWER + CARRIED)

    def end(self) -> None:
        """When the older month takes no more changes: holds give back what is carried, and
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

    def judge(self, turned: Mapping[str, int]) -> None:
        """Values, limits and what is left of all months, by HTTP and by ledgerctl; and what the
        table will delete.
        turned: what `months` counted."""
        expected: dict[str, tuple[int, int | None]]  # its value, and the ceiling that is shown
        expected = {
            name: (value, CEILING if name.startswith(QUOTA) else None)
            for name, value in turned.items()
        }
        expected |= {
            self._older: (USED + CAPTURED, OLDER),
            self._newer: (NEWER + CARRY, NEWER + CARRY),
        }
        for base, region in itertools.product(
            {name.partition("@")[0] for name in expected}, REGIONS
        ):
            rows = self._http[region].get("periods", base, last="3")["periods"]
            nothing = {"down": None, "up": None}
            listed = [row | {"available": row["available"] or nothing} for row in rows]
            self._site.must(
                f"ledgerctl in {region}",
                self._ledgerctl("periods", base, "--last", "3", of=region),
                listed,
            )
            found = {
                row["counter"]: (
                    row["value"],
                    row["count"],
                    row["ceiling"],
                    row["available"]["up"],
                    row.get("carried"),
                )
                for row in listed
                if row["value"]
            }
            months = {
                name: (
                    value,
                    value,
                    ceiling,
                    None if ceiling is None else ceiling - value - (carried or 0),
                    carried,
                )
                for name, (value, ceiling) in expected.items()
                for carried in [CARRY if name == self._older else None]
                if name.startswith(f"{base}@")
            }
            self._site.must(f"{region}: months", found, months)
        self._site.wrong += self._wrong_items()
        self._site.must("kinds of items that retire and were not seen", KINDS - self._kinds, set())
        stack = self._site.aws("cloudformation")[HERE].get_template(StackName=f"{TABLE}-table")[
            "TemplateBody"
        ]
        table = (json.loads(stack) if isinstance(stack, str) else stack)["Resources"]["Table"][
            "Properties"
        ]
        wanted = {"AttributeName": "retires", "Enabled": True}
        self._site.must(
            "time to live in the table's stack", table.get("TimeToLiveSpecification"), wanted
        )
        for region, client in self._site.aws("dynamodb").items():
            said = client.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
            # AWS takes an hour
            on = said.get("AttributeName"), said["TimeToLiveStatus"] in ("ENABLING", "ENABLED")
            self._site.must(f"{region}: time to live", on, ("retires", True))
        total = sum(value for value, _ in expected.values())
        self._site.say(
            f"  {len(expected)} months in both Regions: {total} changes; items that retire: "
            f"{self._kinds}"
        )

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
        region = REGIONS[next(self._numbers) % 2]
        status, said, wait_s = self._add(self._newer, self._turn.at + MINUTE, region)
        if status == 201:
            return True
        late_s = abs(wait_s - max(1, (self._turn.next - datetime.now(UTC)).total_seconds()))
        found = status, said.get("type"), said.get("resets_at"), late_s < 60
        self._site.must(
            f"{region}: a refusal", found, (409, LIMIT_REACHED, time_text(self._turn.next), True)
        )
        return False

    def _refused(self) -> None:
        """In each Region by HTTP, and through SQS, where what no retry can help is a dead
        letter.
        """
        long_over = self._turn.at - timedelta(days=1_000)
        refused = (
            (self.base, self._turn.at, 422, "invalid-request"),
            (self._older, self._turn.at + WEST, 422, "invalid-time"),
            (self._newer, self._turn.at - timedelta(hours=14, milliseconds=1), 422, "invalid-time"),
            (self._older, self._turn.at - MINUTE, 409, "period-over"),
            (f"{self.base}@{long_over:%Y-%m}", long_over, 409, "period-over"),
        )
        over = set[str]()
        for region, (counter, at, status, name) in itertools.product(REGIONS, refused):
            found = self._add(counter, at, region)
            said = found[0], found[1].get("type")
            self._site.must(f"{region}: {counter} at {at}", said, (status, f"{PROBLEM}{name}"))
            key = f"{counter}/{at}/{region}"
            message = dumps(Change(counter, 1, key, at, region))
            self._site.send(region, [message])
            if status == 422:
                self.letters[region].add(message)
            else:
                over.add(key)
        self._site.wait(
            "refusals have no outcome",
            lambda: over - self._site.outcomes(self.base).keys(),
            WAIT_MAX_S,
        )
        self._site.must(
            "outcomes of what is over",
            self._site.outcomes(self.base),
            {key: {"refused"} for key in over},
        )

    def _add(self, counter: str, at: datetime, region: str) -> tuple[int, dict[str, Any], int]:
        """Status, body, and in how many seconds to come again."""
        answer = self._http[region].add(
            counter, 1, f"seat/{next(self._numbers)}", time_text(at), region
        )
        return answer.status, answer.json(), int(answer.headers.get("Retry-After", 0))

    def _wrong_items(self) -> Iterator[str]:
        """Each item's `retires`, by a calendar of its own; that of another name is none."""
        periods = json.loads(self._variables[HERE]["LEDGER_PERIODS"])
        ends = {self._turn.over: self._turn.at, self._turn.opened: self._turn.next}
        for region, table in self._site.aws("dynamodb").items():
            pages = table.get_paginator("scan").paginate(TableName=TABLE)
            for item in itertools.chain.from_iterable(page["Items"] for page in pages):
                pk, sk, retires = item["pk"]["S"], item["sk"]["S"], None
                of = OF_A_MONTH.search(f"{pk}#{sk}")
                if of is not None and of[2] in ends:
                    keep = timedelta(seconds=periods[of[1]]["keep_s"])
                    retires = {"N": str(int((ends[of[2]] + WEST + keep + CLOCKS).timestamp()))}
                    kind, below = pk.partition("#")[0], sk.partition("#")
                    self._kinds.add(
                        below[0]
                        if kind == "fold"
                        else "pack"
                        if kind == "delta" and below[1]
                        else kind
                    )
                if item.get("retires") != retires:
                    yield f"{region}: {pk} {sk} retires {item.get('retires')}, not {retires}"

    def _ledgerctl(self, *arguments: str, of: str = HERE) -> list[dict[str, Any]]:
        """Its documents. Raises CalledProcessError."""
        command = [sys.executable, "-m", "ledgerctl", *arguments, "--json"]
        done = subprocess.run(
            command,
            env=os.environ | self._variables[of],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]
