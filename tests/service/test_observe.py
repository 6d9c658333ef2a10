"""What a function writes where its handler fails, and whether the page's query finds it among
Lambda's own lines.
"""

import io
import json
import re
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler.http_resolver import MockLambdaContext as Context

from ledger.budgets.errors import NotCounted, SettledOtherwise
from ledger.core.errors import DamagedItem, LedgerError, Unavailable
from service.observe import Nowhere, Watch, report

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
AMOUNT = "31415"
NUMBERS = count()

FAILURES = [
    (
        "2026-11-28T08:00:30.031Z 8f3d6c2e-1f3a-4b9e-9a53-0c1a4f1d2b3c Task timed out after 30.03 "
        "seconds"
    ),
    (
        "RequestId: 8f3d6c2e-1f3a-4b9e-9a53-0c1a4f1d2b3c Error: Runtime exited with error: signal: "
        "killed"
    ),
    "REPORT RequestId: 8f3d6c2e\tDuration: 812.40 ms\tBilled Duration: 813 ms\tMemory Size: 512 "
    "MB\tMax Memory Used: 512 MB\tStatus: error\tError Type: Runtime.OutOfMemory",
    "REPORT RequestId: 8f3d6c2e\tDuration: 30000.00 ms\tBilled Duration: 30000 ms\tMemory Size: "
    "512 MB\tMax Memory Used: 190 MB\tStatus: timeout",
    "[ERROR] Runtime.ImportModuleError: Unable to import module 'service.ring.main': No module "
    "named 'ledger'\nTraceback (most recent call last):",
    (
        "INIT_REPORT Init Duration: 137.69 ms\tPhase: init\tStatus: error\tError Type: "
        "Runtime.ImportModuleError"
    ),
    "INIT_REPORT Init Duration: 10009.12 ms\tPhase: init\tStatus: timeout",
    (
        "[ERROR] InvalidSettings: LEDGER_TABLE is not set.\nTraceback (most recent call last):\n  "
        "File ..."
    ),
    "[ERROR] KeyError: 'Records'\nTraceback (most recent call last):\n  File ...",
]
"""Lambda's plain lines:
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
"""

CALM = [
    (
        "INIT_START Runtime Version: python:3.13.v41\tRuntime Version ARN: "
        "arn:aws:lambda:eu-west-1::runtime:7f1a"
    ),
    "START RequestId: 8f3d6c2e-1f3a-4b9e-9a53-0c1a4f1d2b3c Version: $LATEST",
    "END RequestId: 8f3d6c2e-1f3a-4b9e-9a53-0c1a4f1d2b3c",
    "REPORT RequestId: 8f3d6c2e\tDuration: 12.34 ms\tBilled Duration: 13 ms\tMemory Size: 512 MB\t"
    "Max Memory Used: 120 MB\tInit Duration: 800.00 ms",
    '{"_aws":{"Timestamp":1,"CloudWatchMetrics":[]},"service":"ledger","LanesFailed":[0.0]}',
]


def found(line: str) -> bool:
    """Whether the filter of the page's query lets a line through.

    A line that is JSON has its fields.
    """
    (levels, form) = re.findall(
        r"\| filter level in (\[.+?\]) or @message like /(.+)/$", PAGE, re.MULTILINE
    )[0]
    fields: Any = json.loads(line) if line.startswith("{") else {}
    return fields.get("level") in json.loads(levels) or re.search(form, line) is not None


def watch(stream: io.StringIO, level: str = "INFO") -> Watch:
    """Of a name of its own: a logger of the same name would write to the first one's stream."""
    return Watch(Logger(service=f"ledger-{next(NUMBERS)}", stream=stream, level=level), Nowhere())


def failed(error: Exception, level: str = "INFO") -> list[str]:
    """The lines of a function whose handler raises this."""

    def handler(event: dict[str, Any], context: object) -> Any:
        raise error

    stream = io.StringIO()
    with pytest.raises(type(error)):
        watch(stream, level).around(handler)({}, Context())  # type: ignore[arg-type]
    return stream.getvalue().splitlines()


def test_the_pages_query_finds_the_lines_to_act_on_alone() -> None:
    assert [line for line in FAILURES if not found(line)] == []
    ours = [
        line for error in (KeyError("Records"), Unavailable("no answer")) for line in failed(error)
    ]
    assert [line for line in ours if not found(line)] == []
    stream = io.StringIO()
    logger = watch(stream).logger
    logger.warning("a visit did not fit its time")
    logger.error("lanes that nobody reads")
    assert [found(line) for line in stream.getvalue().splitlines()] == [True, True]
    logger.info("swept", extra={"lanes": 3})
    assert [line for line in [*CALM, stream.getvalue().splitlines()[-1]] if found(line)] == []


@pytest.mark.parametrize(
    "error", [ValueError("bad"), Unavailable(AMOUNT), DamagedItem("pk", "sk", f"total={AMOUNT}")]
)
def test_a_handler_that_raises_logs_one_line_without_amounts(
    error: Exception,
) -> None:
    (line,) = map(json.loads, failed(error))
    assert (line["level"], line["error"]) == ("ERROR", type(error).__name__)
    assert line["function_request_id"]
    assert AMOUNT not in str(line)
    if isinstance(error, LedgerError):
        assert AMOUNT in str(failed(error, "DEBUG"))
    else:
        assert "handler" in line["exception"]  # where it was raised


def test_a_process_that_publishes_nowhere_writes_no_metric() -> None:
    program = "from service.observe import Watch\nwatch = Watch.here('api')\nfor _ in range(250):"
    program += (
        "\n    watch.publish({'DeltasRecorded': 1, 'TailDeltas': 2})\n    "
        "watch.around(lambda event, context: 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_no_line_of_a_settlement_denies_what_counts() -> None:
    stream = io.StringIO()
    other = SettledOtherwise("llm:key", 40, 20, is_least=True)
    report(watch(stream), other, NotCounted("llm:key", 20, 40, None))
    repeated, late = (json.loads(line)["message"] for line in stream.getvalue().splitlines())
    assert repeated == "hold ended before: nothing was written; its first end is final"
    assert late.startswith("period over:")
    assert "nothing was written" not in late
