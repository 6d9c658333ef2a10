"""What the functions wrote, judged.

Rule 1: An invocation that logged an error or failed is wrong: poison does neither.
Rule 2: One that failed for want of an answer is told, and is not wrong: all else is judged as if it had not.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

SIGNS_OF_FAILURE = ('"level":"ERROR"', "Traceback", "errorType")
PASSES = re.compile(
    r'ledger\.errors\.(Unavailable|Throttled|OutcomeUnknown): |"error":"(Unavailable|Throttled|OutcomeUnknown)"'
)
"""Of an invocation whose engine was too slow: what it was sent is sent again, by itself or by its event source."""

Say = Callable[[str], None]


def wrong_logs(logs: Mapping[str, Any], say: Say) -> Iterator[str]:
    """Each invocation that failed, with all that it wrote. `logs`: a client of each Region."""
    for region, client in logs.items():
        for group in _groups(client):
            for lines in _invocations(client, group):
                told = "\n".join([f"{region}: {group}:", *lines])
                if not any(sign in told for sign in SIGNS_OF_FAILURE):
                    continue
                if PASSES.search(told):
                    say(f"  failed, and was sent again: {told}")
                else:
                    yield told


def wrong_packs(logs: Mapping[str, Any], say: Say) -> Iterator[str]:
    """The Regions in which no change was accepted in a pack: nothing is shown of packs then."""
    for region, client in logs.items():
        (name,) = [group for group in _groups(client) if group.endswith("add-from-queue")]
        lines = [line for lines in _invocations(client, name) for line in lines if '"DeltasAccepted":' in line]
        accepted = sum(sum(json.loads(line)["DeltasAccepted"]) for line in lines)
        say(f"  {region} accepted {accepted:,.0f} changes in packs")
        if not accepted:
            yield f"{region}: no change was accepted in a pack"


def _groups(client: Any) -> list[str]:
    return [each["logGroupName"] for each in client.describe_log_groups()["logGroups"]]


def _invocations(client: Any, group: str) -> Iterator[list[str]]:
    """What each invocation of a function wrote, in lines."""
    pages = client.get_paginator("filter_log_events").paginate(logGroupName=group)
    of_stream: dict[str, list[list[str]]] = {}
    for event in (event for page in pages for event in page["events"]):
        invocations = of_stream.setdefault(event["logStreamName"], [])
        if not invocations or event["message"].startswith("START "):
            invocations.append([])
        invocations[-1].append(event["message"].strip())
    yield from chain.from_iterable(of_stream.values())
