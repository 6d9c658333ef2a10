"""What the functions wrote, judged.

Rule 1: An invocation that logged an error or failed is wrong: poison does neither.
Rule 2: One that failed for want of an answer is shown, and is not wrong: all else is judged as if it had not.
Rule 3: A Region in which no change was accepted in a pack is wrong: nothing is shown of packs then.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from lab.e2e.metrics import events_of

SIGNS_OF_FAILURE = ('"level":"ERROR"', "Traceback", "errorType")
PASSES = re.compile(
    r'ledger\.errors\.(Unavailable|Throttled|OutcomeUnknown): |"error":"(Unavailable|Throttled|OutcomeUnknown)"'
)
"""Of an invocation whose engine was too slow: what it was sent is sent again, by itself or by its event source."""


def wrong_logs(logs: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[str]:
    """Each invocation that failed, with all that it wrote. `logs`: a client of each Region."""
    for region, client in logs.items():
        accepted = 0
        for lines in _invocations(client):
            accepted += sum(sum(json.loads(line)["DeltasAccepted"]) for line in lines if '"DeltasAccepted":' in line)
            text = "\n".join([f"{region}:", *lines])
            if not any(sign in text for sign in SIGNS_OF_FAILURE):
                continue
            if PASSES.search(text):
                say(f"  failed, and was sent again: {text}")
            else:
                yield text
        say(f"  {region} accepted {accepted:,.0f} changes in packs")
        if not accepted:
            yield f"{region}: no change was accepted in a pack"


def _invocations(logs: Any) -> Iterator[list[str]]:
    """What each invocation of a function wrote: the function, and lines."""
    of_stream: dict[tuple[str, str], list[list[str]]] = {}
    for function, event in events_of(logs):
        invocations = of_stream.setdefault((function, event["logStreamName"]), [])
        if not invocations or event["message"].startswith("START "):
            invocations.append([function])
        invocations[-1].append(event["message"].strip())
    yield from chain.from_iterable(of_stream.values())
