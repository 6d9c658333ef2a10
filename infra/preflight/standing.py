"""Checks of what stands in the way: a table or a stack that is there, names that are taken, a
template that is refused.

Rule 1: The checks are those of `make deploy` before its first write, by the same functions.
Rule 2: CloudFormation takes 51,200 bytes of a template that is in no bucket, and the service's has
more. So the check sends two bodies: all but alarms and dashboard, and these with bare names of the
rest.
Rule 3: The check makes a change set only on demand, describes and deletes it, and never executes
it. That of a new stack leaves an empty stack, which the check deletes, too.
"""

import json
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import WaiterError

from infra import aws, table_shape, table_template
from infra.preflight.flight import MEND, OK, Findings, Flight
from infra.preflight.simulated import Values

WATCHING = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard")


def table(flight: Flight) -> Findings:
    stack = flight.target.table_stack
    there = aws.stack(stack.home, stack.name)
    if there.busy:
        yield OK, f"{stack} is {there.status}: make deploy waits for its end"
        return
    stack.refuse(there)
    flight.target.refuse_another_table()
    yield (
        OK,
        f"{stack} is {there.status}"
        if there.status
        else f"no stack {stack.name} and no table of that name",
    )


def shape(flight: Flight) -> Findings:
    settings = table_shape.settings_of(flight.files[flight.home], flight.home)
    shape = table_shape.refuse_another(
        settings, table_shape.table_of(flight.target.table, flight.home)
    )
    yield OK, "as these parameters" if shape else "none yet"


def service(flight: Flight, region: str) -> Findings:
    there = flight.target.deployed(region)
    said, cure = (
        f"the stack {flight.target.service} is {there.status}",
        aws.BY_A_PERSON.get(there.status, aws.OR_ELSE),
    )
    if there.status:
        yield (
            (OK, said)
            if there.status in aws.WHOLE
            else (MEND, f"{said}: {'wait' if there.busy else cure}")
        )
    else:
        left = [(MEND, f"an earlier stack left it: {command}") for command in _left(flight, region)]
        yield from left or [(OK, "no stack, and nothing that has one of its names")]


def _left(flight: Flight, region: str) -> Iterator[str]:
    """Commands that delete what has a name that CloudFormation would use."""
    service, values = flight.target.service, Values(flight, region)
    made = [each.get("Properties", {}) for each in flight.template(region)["Resources"].values()]
    names = {
        values.of(each[key])
        for each in made
        for key in ("QueueName", "LogGroupName")
        if key in each
    }
    for url in (
        aws.client("sqs", region).list_queues(QueueNamePrefix=f"{service}-").get("QueueUrls", [])
    ):
        if url.rpartition("/")[2] in names:
            yield f"aws sqs delete-queue --region {region} --queue-url {url}, and wait a minute"
    for prefix in ("/aws/lambda/", "/aws/vendedlogs/apis/"):
        groups = aws.client("logs", region).describe_log_groups(
            logGroupNamePrefix=f"{prefix}{service}"
        )["logGroups"]
        for name in sorted({each["logGroupName"] for each in groups} & names):
            yield f"aws logs delete-log-group --region {region} --log-group-name {name}"


def templates(flight: Flight, region: str) -> Findings:
    for body in (*_bodies(flight.template(region)), _table_body(flight)):
        aws.client("cloudformation", region).validate_template(TemplateBody=body)
    yield OK, "CloudFormation accepts them"


def _bodies(template: Any) -> tuple[str, str]:
    watching = {
        name: each for name, each in template["Resources"].items() if each["Type"] in WATCHING
    }
    rest = {name: each for name, each in template["Resources"].items() if name not in watching}
    bare = {name: {"Type": each["Type"]} for name, each in rest.items()}
    first, second = template | {"Resources": rest}, template | {"Resources": bare | watching}
    return json.dumps(first, separators=(",", ":")), json.dumps(second, separators=(",", ":"))


def _table_body(flight: Flight) -> str:
    stack = flight.target.table_stack
    return table_template.template_of(len(stack.regions), stack.capacity, retires=stack.retires)


def change_sets(flight: Flight, region: str) -> Findings:
    target = flight.target
    if region == flight.home:
        values = {"TableName": target.table, **table_template.named(target.regions)}
        yield from _change_set(region, target.table_stack.name, _table_body(flight), values)
    yield from _change_set(region, target.service, _bodies(flight.template(region))[0], {})


def _change_set(region: str, name: str, body: str, values: dict[str, str]) -> Findings:
    cloudformation, new = aws.client("cloudformation", region), not aws.stack(region, name).status
    which: Any = {"StackName": name, "ChangeSetName": "preflight"}
    given: Any = [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()]
    how: Any = {"ChangeSetType": "CREATE" if new else "UPDATE", "Capabilities": ["CAPABILITY_IAM"]}
    cloudformation.create_change_set(**which, **how, TemplateBody=body, Parameters=given)
    try:
        cloudformation.get_waiter("change_set_create_complete").wait(**which)
        changes = len(cloudformation.describe_change_set(**which)["Changes"])
        yield (
            OK,
            f"the stack {name}: {changes} resources would change, besides alarms and dashboard",
        )
    except WaiterError as error:
        reason = str(error.last_response.get("StatusReason", error))
        yield OK if "didn't contain changes" in reason else MEND, f"the stack {name}: {reason}"
    finally:
        cloudformation.delete_change_set(**which)
        if new and aws.stack(region, name).status == "REVIEW_IN_PROGRESS":
            cloudformation.delete_stack(StackName=name)
