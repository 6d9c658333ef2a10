"""Answers that are no problems, from what the library returned.

Rule 1: None may be kept by a cache on its way.
"""

from typing import TypeVar

from aws_lambda_powertools.event_handler import Response

from ledger import Receipt
from ledger.message import time_text
from service.api.models import Added

HEADERS = {"Cache-Control": "no-store"}
Said = TypeVar("Said")


def json_of(said: Said, status: int = 200, **headers: str) -> Response[Said]:
    return Response(status, "application/json", said, HEADERS | headers)


def counted(said: Said, receipt: Receipt) -> Response[Said]:
    """The answer to the request of one change: it tells a repetition, also in a header."""
    hit = {"Idempotency-Hit": "true"} if receipt.outcome == "replayed" else {}
    return json_of(said, status_of(receipt), **hit)


def status_of(receipt: Receipt) -> int:
    return 201 if receipt.outcome == "recorded" else 200


def added_of(receipt: Receipt) -> Added:
    lane, delta = receipt.delta.lane, receipt.delta
    at = time_text(delta.at)
    return Added(outcome=receipt.outcome, counter=lane.counter, token=delta.token, region=lane.region, at=at)
