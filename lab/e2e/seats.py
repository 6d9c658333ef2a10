"""Seats up to a ceiling, sold from outside in both Regions at once: by holds, by HTTP and through
SQS; and the judge.

Rule 1: A seat is a change of 1, so what is free decides how many are sold, whoever comes first;
buyers want more.
Rule 2: Callers repeat each request for a seat by HTTP with its key, elsewhere and through SQS: its
answer is final.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import product
from typing import Any

from lab.e2e.deployed import CEILING, REGIONS, SEATS
from lab.e2e.site import Site
from ledger.client.message import dumps, time_text
from ledger.core.values import Change

COUNTER = f"{SEATS}gig"
HERE, THERE = REGIONS
HELD, CAPTURED = {HERE: 8, THERE: 5}, 5  # the rest is freed
ASKED_BY_HTTP, ASKED_BY_SQS = 12, 8  # in each Region
FREE = CEILING - sum(HELD.values())
FREED = CEILING - FREE - CAPTURED
SENDERS, EXPIRES_S = 4, 600

REFUSED = "urn:ledger:problem:limit-reached"
AGAIN = {201: 200}  # what the same request is answered with the second time


class Seats:
    """One sale."""

    def __init__(self, site: Site) -> None:
        self._site, self._http = site, site.http
        self._answered: dict[str, str] = {}  # by idempotency key, which says everything of a seat

    def sell(self) -> None:
        """Sell every seat; when it returns, each outcome of what went through SQS was queued, or
        waited for.
        """
        at = time_text(datetime.now(UTC))
        holds = [
            self._http[there].hold(COUNTER, n, EXPIRES_S, f"hold/{there}", at)
            for there, n in HELD.items()
        ]
        by_http = _seats("http", ASKED_BY_HTTP)
        self._sell_by_http(by_http)
        self._site.stands("with holds", COUNTER, FREE, CEILING, held=sum(HELD.values()))
        self._end(*holds)
        self._site.stands("without holds", COUNTER, FREE + CAPTURED, CEILING)
        self._sell_by_sqs([*_seats("sqs", ASKED_BY_SQS), *by_http])

    def judge(self) -> None:
        """At rest exactly the ceiling is sold, as outcomes and reads say."""
        outcomes = self._site.outcomes(COUNTER)
        for key in outcomes.keys() & self._answered.keys():
            self._site.must(f"the outcome of {key}", outcomes[key], {self._answered[key]})
        by_sqs = [sorted(said) for key, said in outcomes.items() if key not in self._answered]
        refused = len(REGIONS) * ASKED_BY_SQS - FREED
        self._site.must(
            "sold through SQS", sorted(by_sqs), [["counted"]] * FREED + [["refused"]] * refused
        )
        self._site.stands("at the end", COUNTER, CEILING, CEILING)
        for region, client in self._http.items():
            balance = client.get("counters", COUNTER)
            found = balance["value"], balance["count"]
            self._site.must(f"{region}: value and count", found, (CEILING, FREE + FREED + 1))

    def _sell_by_http(self, seats: list[Change]) -> None:
        with ThreadPoolExecutor(SENDERS) as pool:
            first = list(pool.map(lambda seat: self._post(seat, str(seat.region)), seats))
            again = list(
                pool.map(
                    lambda seat: self._post(seat, HERE if seat.region == THERE else THERE), seats
                )
            )
        found = Counter(outcome for outcome, _, _ in first)
        self._site.must("sold by HTTP", found, Counter(counted=FREE, refused=len(seats) - FREE))
        for seat, (outcome, token, status), twice in zip(seats, first, again, strict=True):
            self._answered[str(seat.idempotency_key)] = outcome
            self._site.must(
                f"{seat.idempotency_key} again", twice, (outcome, token, AGAIN.get(status, status))
            )
        self._site.say(f"  seats by HTTP in both Regions: {dict(found)}, and each again elsewhere")

    def _end(self, captured: dict[str, Any], released: dict[str, Any]) -> None:
        """One hold in part, the other without a seat; each again in the other Region."""
        for region in (THERE, HERE):
            end = self._http[region].end
            found = [
                end(captured, "capture", amount=CAPTURED).status,
                end(released, "release").status,
            ]
            self._site.must(f"{region}: capture and release: {found}", max(found) < 300, True)
        other = self._http[HERE].end(captured, "release")
        self._site.must("another end", (other.status, other.json().get("state")), (409, "captured"))

    def _sell_by_sqs(self, seats: list[Change]) -> None:
        """In messages of one and of many, each in the Region where it was first asked for."""
        for region in REGIONS:
            there = [seat for seat in seats if seat.region == region]
            self._site.send(region, [dumps(seat) for seat in there[::2]])
            self._site.send_many(region, there[1::2])
        sent = {str(seat.idempotency_key) for seat in seats}
        outcomes = self._site.wait_for_outcomes(sent, COUNTER)
        self._site.must("outcomes of what was not sent", outcomes.keys() - sent, set())
        self._site.say(f"  seats through SQS: {len(seats)} requests, {len(outcomes)} outcomes")

    def _post(self, seat: Change, region: str) -> tuple[str, str, int]:
        """Counted or refused, as the queue of outcomes says it, else the type of a problem; the
        token; the status.
        """
        answer = self._http[region].add(seat)
        body = answer.json()
        outcome = "counted" if answer.status < 300 else body.get("type", "no problem")
        return "refused" if outcome == REFUSED else outcome, body.get("token", ""), answer.status


def _seats(way: str, number: int) -> list[Change]:
    """Seats, one after the other in each Region."""
    pairs = product(range(number), REGIONS)
    return [
        Change(COUNTER, 1, f"{way}/{n}/{region}", datetime.now(UTC), region) for n, region in pairs
    ]
