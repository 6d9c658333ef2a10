"""S7 and S8: lanes that are never done, whose rings are rare, so each visit sends the next in one
chain of messages; and what that took, beside docs/costs.md.
"""

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from lab.e2e.metrics import events_of
from lab.e2e.site import Site
from lab.smoke.visit import Visit
from ledger.core.values import Change

LANES, RING_S, METRICS_S = 8, 200, 240
A_SECOND, LASTS_S = 150, 360
A_SECOND_HERE, LASTS_HERE_S = 10, 10
UNITS = 0.10  # docs/costs.md: a change in packs
REPORT = re.compile(
    r"\tDuration: ([\d.]+) ms.*Max Memory Used: (\d+) MB(?:.*Init Duration: ([\d.]+) ms)?",
    re.DOTALL,
)


class Load(NamedTuple):
    began: datetime
    sent: int
    wrong: list[str]


@pytest.fixture(scope="module")
def load(visit: Visit) -> Load:
    site, functions, home = Site(print), visit.client("lambda"), visit.regions[0]
    name, began = f"{visit.table}-ring", datetime.now(UTC)
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    variables |= {"LEDGER_RING_EVERY_S": str(RING_S)}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
    a_second, lasts_s = (A_SECOND_HERE, LASTS_HERE_S) if visit.engine else (A_SECOND, LASTS_S)
    for second in range(lasts_s):
        at, keys = datetime.now(UTC), [f"{second}/{number}" for number in range(a_second)]
        site.send_many(
            home,
            [Change(f"loop:{lane}", 1, key, at, home) for key in keys for lane in range(LANES)],
        )
        time.sleep(max(0.0, second + 1 - (datetime.now(UTC) - began).total_seconds()))
    site.wait("changes wait", lambda: site.waiting("changes"), 600)
    time.sleep(0 if visit.engine else METRICS_S)
    site.must("dead letters of work", dict(site.drain(home, "work-dlq")), {})
    return Load(began, LANES * a_second * lasts_s, site.wrong)


def total(visit: Visit, region: str, load: Load, space: str, name: str, *of: str) -> float:
    """A metric's sum since the load began; `of`: the name and value of its dimension."""
    dimensions = [dict(zip(("Name", "Value"), of, strict=True))]
    times: Any = {
        "StartTime": load.began,
        "EndTime": datetime.now(UTC),
        "Period": 60,
        "Statistics": ["Sum"],
    }
    client = visit.client("cloudwatch", region)
    found = client.get_metric_statistics(
        Namespace=space, MetricName=name, Dimensions=dimensions, **times
    )
    return float(sum(point["Sum"] for point in found["Datapoints"]))


@pytest.mark.shows(21)
def test_no_message_of_a_long_chain_is_dropped(
    visit: Visit, load: Load, say: Callable[[str], None]
) -> None:
    assert load.wrong == []
    if visit.engine:
        pytest.skip("an engine counts no recursion")
    metric = "AWS/Lambda", "RecursiveInvocationsDropped", "FunctionName", f"{visit.table}-compact"
    assert total(visit, visit.regions[0], load, *metric) == 0
    say(f"{load.sent:,} changes of {LANES} lanes: none dropped, no dead letter")


@pytest.mark.shows(22)
def test_a_change_takes_the_units_of_the_costs_page(
    on_aws: Visit, load: Load, say: Callable[[str], None], costs: Callable[[str], None]
) -> None:
    metric = "AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", on_aws.table
    each = [total(on_aws, region, load, *metric) / load.sent for region in on_aws.regions]
    costs(f"{UNITS} write units a change in each Region")
    say(f"{' and '.join(f'{units:.3f}' for units in each)} write units a change in packs")
    assert all(UNITS / 3 < units < UNITS * 3 for units in each), each


@pytest.mark.shows(23)
def test_functions_start_and_run_as_the_costs_page_reckons(
    on_aws: Visit, load: Load, say: Callable[[str], None], costs: Callable[[str], None]
) -> None:
    found: dict[str, list[tuple[float, int, float]]] = {}
    for name, event in events_of(on_aws.client("logs")):
        if match := REPORT.search(event["message"]):
            known = float(match[1]), int(match[2]), float(match[3] or 0)
            found.setdefault(name.removeprefix(f"{on_aws.table}-"), []).append(known)
    lines = []
    for name, runs in sorted(found.items()):
        middle, starts = (
            sorted(run[0] for run in runs)[len(runs) // 2],
            [run[2] for run in runs if run[2]],
        )
        memory = max(run[1] for run in runs)
        lines.append(
            f"{name} {middle:.0f} ms, {len(starts)} starts to {max(starts, default=0):.0f} ms, "
            f"{memory} MB"
        )
    costs("a request of the API 10 ms, a batch of changes 60 ms, at 512 MB")
    say("; ".join(lines))
    assert len(found) == 6, sorted(found)


def watched(visit: Visit) -> Iterator[dict[str, Any]]:
    """The metrics that the alarms name."""
    pages = (
        visit.client("cloudwatch")
        .get_paginator("describe_alarms")
        .paginate(AlarmNamePrefix=visit.table)
    )
    for alarm in (each for page in pages for each in page["MetricAlarms"]):
        of_math = [
            each["MetricStat"]["Metric"]
            for each in alarm.get("Metrics", [])
            if "MetricStat" in each
        ]
        yield from of_math or ([alarm] if "MetricName" in alarm else [])


@pytest.mark.shows(24)
def test_the_metrics_that_alarms_name_exist(
    on_aws: Visit, load: Load, say: Callable[[str], None]
) -> None:
    metrics, missing = [*watched(on_aws)], set[str]()
    for metric in metrics:
        asked = {
            name: metric[name]
            for name in ("Namespace", "MetricName", "Dimensions")
            if metric.get(name)
        }
        if not on_aws.client("cloudwatch").list_metrics(**asked)["Metrics"]:
            missing.add(metric["MetricName"])
    if missing:
        pytest.skip(f"nothing has happened yet that would make {', '.join(sorted(missing))}")
    say(f"all {len(metrics)} exist")
