"""A run of smoke on an engine, cut off in any step and cleaned; what it refuses; its report; the
page it rests on.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from infra import aws, table_stack
from lab.engines.ministack import ENVIRONMENT, Engine
from lab.smoke import __main__ as program
from lab.smoke import clean, report, visit
from lab.smoke.report import OF_THE_TABLE, PAGE, STEPS
from lab.smoke.visit import ROOT, Visit

REGIONS = ["eu-west-1", "us-east-1"]
BUCKET = {"Type": "AWS::S3::Bucket"}
QUEUE = {"Type": "AWS::SQS::Queue"}
CLIENT = functools.cache(aws.client)


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said; a journal is a file of the test."""
    lines: list[str] = []
    monkeypatch.setattr(visit, "FOLDER", tmp_path)
    monkeypatch.setattr(aws, "say", lines.append)
    monkeypatch.setattr(aws, "client", CLIENT)
    monkeypatch.setattr(program, "end_on_signals", lambda: None)
    return lines


@pytest.fixture
def run(
    engine: Engine, said: list[str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Visit:
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": engine.endpoint_url}.items():
        monkeypatch.setenv(name, value)
    for module, poll in (
        (clean, "POLL_S"),
        (table_stack, "STACK_POLL_S"),
        (table_stack, "ACTIVE_POLL_S"),
    ):
        monkeypatch.setattr(module, poll, 0.05)
    monkeypatch.setattr(clean, "LEFT_WAIT_S", 0)
    return Visit(
        f"{abs(hash(request.node.name)) % 16**8:08x}", "000000000000", REGIONS, engine.endpoint_url
    )


def make_stack(run: Visit, region: str, name: str, **resources: Any) -> None:
    client, body = run.client("cloudformation", region), json.dumps({"Resources": resources})
    client.create_stack(StackName=name, TemplateBody=body, EnableTerminationProtection=True)
    client.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})


def makes(run: Visit, path: str) -> None:
    """What a step makes: roles, or the service in both Regions with its zip, and the queue of a
    subscriber.
    """
    if path == STEPS["S5"]:
        queue = {**QUEUE, "Properties": {"QueueName": f"{run.name}-roles"}}
        make_stack(run, REGIONS[0], f"{run.name}-roles", Queue=queue)
    if path == STEPS["S6"]:
        for region in REGIONS:
            make_stack(
                run,
                region,
                run.table,
                Bucket={**BUCKET, "Properties": {"BucketName": f"{run.table}-{region}"}},
            )
            run.client("s3", region).put_object(
                Bucket=f"{run.table}-{region}", Key="service.zip", Body=b""
            )
            name, arn = (
                f"{run.table}-crossed",
                f"arn:aws:sqs:{region}:000000000000:{run.table}-crossed",
            )
            run.client("sqs", region).create_queue(QueueName=name)
            run.client("events", region).put_rule(
                Name=name, EventPattern='{"source": ["exact-counter"]}'
            )
            run.client("events", region).put_targets(
                Rule=name, Targets=[{"Id": "queue", "Arn": arn}]
            )


def there(run: Visit, prefix: str) -> set[str]:
    """Whatever has such a name, by lists of its own."""
    found = {bucket["Name"] for bucket in run.client("s3").list_buckets()["Buckets"]}
    for region in REGIONS:
        found |= {*run.client("dynamodb", region).list_tables()["TableNames"]}
        found |= {
            stack["StackName"]
            for stack in run.client("cloudformation", region).describe_stacks()["Stacks"]
        }
        found |= {rule["Name"] for rule in run.client("events", region).list_rules()["Rules"]}
        found |= {
            url.split("/")[-1]
            for url in run.client("sqs", region).list_queues().get("QueueUrls", [])
        }
    return {name for name in found if name.startswith(prefix)}


def ends_in(step: str, run: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child of this step makes what it makes; then the program is told to end."""

    def child(_: Visit, *arguments: str) -> int:
        makes(run, arguments[-1])
        if arguments[-1] == STEPS[step]:
            raise SystemExit(143)
        return 0

    monkeypatch.setattr(Visit, "child", child)


@pytest.mark.parametrize("step", STEPS)
def test_a_run_cut_off_in_any_step_leaves_nothing(
    step: str, run: Visit, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_in(step, run, monkeypatch)
    with pytest.raises(SystemExit):
        program.play(run, tuple(STEPS))
    assert there(run, run.name) == set()
    assert f"Stopped: {step}" in run.journal.with_suffix(".md").read_text()
    assert f"{run.name}: nothing is left" in said


def call(*arguments: str, answer: str = "") -> tuple[int, str]:
    app = typer.Typer()
    app.command()(program.main)
    result = CliRunner().invoke(app, [*arguments], input=answer)
    return result.exit_code, result.output


def test_a_killed_runs_rest_is_taken_away_by_its_id(
    run: Visit, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_in("S6", run, monkeypatch)
    make_stack(run, REGIONS[1], "smoke-of-another", Queue=QUEUE)
    with monkeypatch.context() as killed:
        killed.setattr(clean, "clean", lambda _: ["all of it"])
        with pytest.raises(SystemExit):
            program.play(run, ("S5", "S6"))
    left = {f"{run.name}-roles", f"{run.table}-table", run.table, f"{run.table}-crossed"}
    assert there(run, run.name) == left | {f"{run.table}-{region}" for region in REGIONS}
    account = run.account
    run.account = "111122223333"
    run.begin()
    assert call("--clean", run.id)[0] == 2
    assert "are of 000000000000" in said[-1]
    run.account = account
    run.begin()
    assert [call("--clean", run.id)[0] for _ in range(2)] == [0, 0]
    assert (there(run, run.name), "smoke-of-another" in there(run, "smoke-of")) == (set(), True)


def test_what_cannot_be_taken_away_is_said_with_what_it_costs(
    run: Visit, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(client: Any, name: str) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteStack")

    monkeypatch.setattr(clean, "KINDS", (clean.KINDS[0]._replace(delete=denied),))
    make_stack(run, REGIONS[0], run.table, Queue=QUEUE)
    run.begin()
    assert call("--clean", run.id)[0] == 2
    assert f"{run.name}: left: stack {run.table} in eu-west-1: 0.55 dollars a day" in said[-1]


def test_nothing_is_made_without_regions_credentials_and_a_yes(
    run: Visit, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (
        ["--regions", "eu-west-1"],
        ["--regions", "eu-west-1 eu-west-1"],
        ["--clean", ""],
    ):
        assert call(*arguments)[0] == 2, arguments
    code, asked = call("--table", answer="n\n")
    assert (
        code,
        "Account 000000000000, eu-west-1 us-east-1: 10 minutes, at most 0.10 dollars" in asked,
    ) == (1, True)
    monkeypatch.setattr(aws, "client", CLIENT.__wrapped__)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert call("--yes")[0] == 2
    assert "error: AWS does not accept the credentials in eu-west-1" in said[-1]
    assert [*tmp_path.iterdir()] == []


def case(inside: str = "", **said: object) -> str:
    properties = "".join(
        f'<property name="{name}" value="{value}"/>' for name, value in said.items()
    )
    return f"<testcase><properties>{properties}</properties>{inside}</testcase>"


def test_a_report_has_a_line_for_each_assumption(
    said: list[str],
) -> None:
    run = Visit("1a2b3c4d", "111122223333", REGIONS)
    run.begin()
    bad = '<failure message="no&#10;way"/>'
    answers = {
        "S2": [case('<skipped message="an engine asks nobody"/>', shows=1)],
        "S3": [
            case(shows=2),
            case(bad, shows=3),
            case(shows=3),
            case("<error/>", shows=4),
            case(bad),
        ],
        "S4": [case(shows=9, seen="lag 9 ms", costs="none")],
    }
    for step, cases in answers.items():
        Path(report.results(run, step)).write_text(f"<testsuite>{''.join(cases)}</testsuite>")
    text = report.page(run, ["queue x"], "S5")
    rows = {
        int(row[0]): row[1:]
        for row in re.findall(r"^\| (\d+) \| .* \| (.*) \| (.*) \| (.*) \|$", text, re.M)
    }
    assert [rows[number] for number in (1, 2, 3, 4, 9, 10, 18, 25)] == [
        ("unknown here", "an engine asks nobody", ""),
        ("held", "1 of its tests", ""),
        ("not held", "no way", ""),
        ("unknown", "", ""),
        ("held", "lag 9 ms", "none"),
        ("unknown", "S4 did not get to it", ""),
        ("unknown", "S6 did not get to it", ""),
        ("unknown", "no step shows it", ""),
    ]
    assert "2 held, 1 not held, 32 unknown\n" in text
    assert text.endswith("Stopped: S5\n\nLeft: queue x\n")


def test_the_page_and_the_tests_have_the_same_numbers() -> None:
    claims = report.claims()
    assert (
        [*claims]
        == [*range(1, len(claims) + 1)]
        == [*map(int, re.findall(r"^(\d+)\. ", PAGE.read_text(), re.M))]
    )
    marks = {
        (int(number), step)
        for step, path in STEPS.items()
        for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).glob("test_*.py"))
        for found in re.findall(r"^@pytest\.mark\.shows\((.+)\)$", file.read_text(), re.M)
        for number in found.split(", ")
    }
    assert marks == {(number, step) for number, (_, step) in claims.items() if step != "None"}
    files = re.findall(r"\((\.\./[^)]+)\)", PAGE.read_text())
    assert (len(files), [name for name in files if not (PAGE.parent / name).is_file()]) == (
        len(claims),
        [],
    )
    assert {*OF_THE_TABLE} < {*STEPS}
