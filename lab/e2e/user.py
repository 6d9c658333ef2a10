"""Sends everything, waits until the service is done, and reports what is wrong.

Rule 1: Only what a user can do: SQS messages, HTTP requests, looking at queues. What is waited for
has a limit.
Rule 2: What is not there by then is said, not skipped.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from urllib3.exceptions import HTTPError

from lab.e2e.deployed import TABLE
from lab.e2e.site import POLL_S, Site
from lab.e2e.traffic import POISON_EVERY, Sending, poison
from ledger.client.message import dumps
from service.canary.handler import COUNTER as CANARY

THREADS = 4
WAIT_MAX_S, RUNG_ROUNDS = 900, 3


class User:
    """Of the deployed service."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def send(self, sendings: Sequence[Sending]) -> dict[str, set[str]]:
        """Everything, with poison between, from several threads. Returns each Region's poison."""
        site, statuses = self._site, Counter[str]()
        numbers = range(-(-len(sendings) // POISON_EVERY))
        poisons = {
            region: {poison(number) for number in numbers[first :: len(site.regions)]}
            for first, region in enumerate(site.regions)
        }
        with ThreadPoolExecutor(THREADS) as pool:
            queueing = []
            for region in site.regions:
                changes = {
                    way: [
                        each.change for each in sendings if (each.region, each.way) == (region, way)
                    ]
                    for way in ("one", "many")
                }
                messages = [*map(dumps, changes["one"]), *sorted(poisons[region])]
                queueing.append(pool.submit(site.send, region, messages))
                queueing.append(pool.submit(site.send_many, region, changes["many"]))
            for sending, status in pool.map(
                self._post, [sending for sending in sendings if sending.way == "http"]
            ):
                statuses[status] += 1
                if status not in ("200", "201"):
                    site.wrong.append(
                        f"POST of {sending.event.key} to {sending.region} ended with {status}"
                    )
            queued = sum(future.result() for future in queueing)
        poisoned = sum(map(len, poisons.values()))
        site.say(
            f"sent {queued:,} messages ({poisoned:,} of them poison), HTTP {json.dumps(statuses)}"
        )
        return poisons

    def wait_until_recorded(self) -> None:
        """Until no message is waiting or under way."""
        self._site.wait("messages still wait", lambda: self._site.waiting("changes"), WAIT_MAX_S)

    def wait_until_folded(self, truth: Mapping[str, tuple[int, int]], fold_min: int) -> None:
        """Until every counter that has enough for it was folded, after RUNG_ROUNDS also by the
        sweep: now and then the draw lets no item of a small tail ring."""
        counters = sorted(counter for counter, (_, changes) in truth.items() if changes >= fold_min)
        if not counters:
            self._site.wrong.append(
                f"no counter has {fold_min} changes, so nothing is shown of folds"
            )

        rounds = itertools.count(1)

        def left() -> dict[str, int]:
            if next(rounds) > RUNG_ROUNDS:
                self._sweep()
            found = {
                f"{counter} in {region}": balance["pending"]
                for region, counter, balance in self._balances(counters)
                if balance["pending"] >= fold_min * len(self._site.regions)
            }
            self._site.say(
                f"  not folded yet: {len(found):,} of {len(self._site.regions) * len(counters):,} "
                "tails"
            )
            return found

        self._site.wait("these have too many pending deltas", left, WAIT_MAX_S, 10 * POLL_S)

    def wait_until_cleaned(self) -> None:
        """Until each Region's table holds no delta and no pack but of what is not folded."""
        tables = self._site.aws("dynamodb")

        def left() -> dict[str, int]:
            self._sweep()
            found = {region: _deltas(table) for region, table in tables.items()}
            self._site.say(f"  deltas and packs in the tables, and those that are folded: {found}")
            return {region: folded for region, (_, folded) in found.items() if folded}

        self._site.wait("deltas are there that were folded", left, WAIT_MAX_S, 10 * POLL_S)

    def wrong_balances(self, truth: Mapping[str, tuple[int, int]]) -> Iterator[str]:
        """Every counter of each Region whose value or number of changes is not the truth's."""
        for region, counter, balance in self._balances(sorted(truth)):
            if (balance["value"], balance["count"]) != truth[counter]:
                yield (
                    f"{region} says {counter} = {balance['value']} of {balance['count']}, not "
                    f"{truth[counter]}"
                )
            if sum(balance["by_region"].values()) != balance["value"]:
                yield (
                    f"{region}: the parts of {counter} do not sum to its value: "
                    f"{balance['by_region']}"
                )

    def judge_dead_letters(self, poisoned: Mapping[str, set[str]]) -> None:
        """The dead-letter queue of each Region's changes holds exactly its poison, and the others
        nothing.

        A copy is confirmed before its message is done with, so on a slow engine poison may be there
        twice.
        """
        for region, expected in poisoned.items():
            for name, letters in (
                ("changes-dlq", expected),
                ("work-dlq", set()),
                ("failed", set()),
            ):
                self._site.must(
                    f"{region}: the queue {name}", set(self._site.drain(region, name)), letters
                )

    def _balances(self, counters: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Region, counter, and what the Region's API says of it."""
        with ThreadPoolExecutor(THREADS) as pool:
            for region, client in self._site.http.items():
                found = pool.map(
                    lambda counter, client=client: client.get("counters", counter), counters
                )
                for counter, balance in zip(counters, found, strict=True):
                    yield region, counter, balance

    def _sweep(self) -> None:
        """Called from here: nobody waits for its schedule."""
        for function in self._site.aws("lambda").values():
            function.invoke(FunctionName=f"{TABLE}-sweep", InvocationType="Event", Payload=b"{}")

    def _post(self, sending: Sending) -> tuple[Sending, str]:
        try:
            answer = self._site.http[sending.region].add(sending.change)
        except HTTPError as error:
            return sending, type(error).__name__
        return sending, str(answer.status)


def _deltas(table: Any) -> tuple[int, int]:
    """How many deltas and packs a Region's table holds, and how many of them hold nothing above
    their watermark; but those of the canary, which never ends."""
    pages = table.get_paginator("scan").paginate(
        TableName=TABLE,
        FilterExpression=(
            "(begins_with(pk, :delta) OR attribute_exists(watermark)) AND NOT contains(pk, :canary)"
        ),
        ExpressionAttributeValues={":delta": {"S": "delta#"}, ":canary": {"S": CANARY}},
    )
    marks, held = {}, []
    for item in (item for page in pages for item in page["Items"]):
        if "watermark" in item:
            marks[item["pk"]["S"].removeprefix("fold#")] = item["watermark"]["S"]
        else:
            held.append((item["pk"]["S"].removeprefix("delta#"), item["sk"]["S"]))
    return len(held), sum(sk.partition("#")[0] <= marks.get(lane, "") for lane, sk in held)
