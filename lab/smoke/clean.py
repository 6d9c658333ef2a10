"""The clean-up: finds what a run made by its names, and deletes it.

Rule 1: It deletes only what has a name that begins with the run's, in the run's account and
Regions.
Rule 2: It may be repeated, and begin anywhere: it does not miss what is gone, and waits for what
CloudFormation does.
Rule 3: It looks for such names and, of stacks that the journal has begun, for what AWS tagged with
them. What is not gone it prints, with its cost a day.
Rule 4: A table's other replicas go first, from its home: AWS keeps for a day a replica that another
was made from.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from infra import aws
from lab.smoke.visit import Visit

GONE_WAIT_S, LEFT_WAIT_S, POLL_S, ROUNDS = 1_800, 300, 5, 3
"""The second is for AWS's lists, which still name what was deleted just now."""

TAG = "aws:cloudformation:stack-name"
ABSENT = ("ResourceNotFoundException", "does not exist", "NonExistentQueue")


class Kind(NamedTuple):
    """A kind of resource. listed: how to list its names (paginator, key of a page, name in an
    entry, argument of a prefix). delete: deletes one by its name. dollars: what one costs a day."""

    name: str
    service: str
    listed: tuple[str, str, str, str]
    delete: Callable[[Any, str], object]
    dollars: float


def clean(visit: Visit) -> list[str]:
    """Delete all. Returns what is left, as lines."""
    for kind in KINDS * ROUNDS:
        for region, name in _there(visit, kind):
            aws.say(f"  deleting {kind.name} {name} in {region}")
            try:
                kind.delete(visit.client(kind.service, region), name)
            except ClientError as error:
                if not any(text in str(error) for text in ABSENT):
                    aws.say(f"  {name} is not deleted: {error}")
    left = _left(visit)
    for _ in aws.polls(LEFT_WAIT_S, POLL_S):
        if not left:
            break
        left = _left(visit)
    return left


def _left(visit: Visit) -> list[str]:
    there = ((kind, *found) for kind in KINDS for found in _there(visit, kind))
    named = [
        f"{kind.name} {name} in {region}: {kind.dollars} dollars a day"
        for kind, region, name in there
    ]
    return [*named, *_tagged(visit)]


def _there(visit: Visit, kind: Kind) -> Iterator[tuple[str, str]]:
    """Region and name of each that is there now."""
    operation, key, name, prefix = kind.listed
    for region in visit.regions:
        pages = visit.client(kind.service, region).get_paginator(operation)
        for page in pages.paginate(**({prefix: visit.name} if prefix else {})):
            found = [str(each[name] if name else each) for each in page.get(key, [])]
            yield from (
                (region, each) for each in found if each.split("/")[-1].startswith(visit.name)
            )


def _tagged(visit: Visit) -> Iterator[str]:
    for region in visit.regions if visit.stacks else ():
        pages = visit.client("resourcegroupstaggingapi", region).get_paginator("get_resources")
        try:
            for page in pages.paginate(
                TagFilters=[{"Key": TAG, "Values": sorted(set(visit.stacks))}]
            ):
                yield from (each["ResourceARN"] for each in page["ResourceTagMappingList"])
        except ClientError as error:  # the role may not look
            yield f"perhaps more in {region}: {error}"


def _delete_stack(cloudformation: Any, name: str) -> None:
    region = cloudformation.meta.region_name
    _until_at_rest(region, name)
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    for resource in (each for page in pages for each in page["StackResourceSummaries"]):
        if resource["ResourceType"] == "AWS::S3::Bucket" and (
            bucket := resource.get("PhysicalResourceId")
        ):
            s3 = aws.client("s3", region)
            # few: the zips of a run
            for found in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=found["Key"])
    cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
    cloudformation.delete_stack(StackName=name)
    _until_at_rest(region, name)


def _until_at_rest(region: str, name: str) -> None:
    for _ in aws.polls(GONE_WAIT_S, POLL_S):
        if not aws.stack(region, name).status.endswith("_IN_PROGRESS"):
            return


def _delete_table(dynamodb: Any, name: str) -> None:
    update = partial(dynamodb.update_table, TableName=name)
    for _ in aws.polls(GONE_WAIT_S, POLL_S):
        table = dynamodb.describe_table(TableName=name)["Table"]  # raises when it is gone
        others = {each["RegionName"]: each["ReplicaStatus"] for each in table.get("Replicas", [])}
        others.pop(dynamodb.meta.region_name, None)
        if {table["TableStatus"], *others.values()} != {"ACTIVE"}:
            continue
        if table.get("DeletionProtectionEnabled"):
            update(DeletionProtectionEnabled=False)
        elif others:
            update(ReplicaUpdates=[{"Delete": {"RegionName": min(others)}}])
        else:
            dynamodb.delete_table(TableName=name)


def _delete_rule(events: Any, name: str) -> None:
    if targets := events.list_targets_by_rule(Rule=name)["Targets"]:
        events.remove_targets(Rule=name, Ids=[target["Id"] for target in targets])
    events.delete_rule(Name=name)


def _delete_queue(sqs: Any, url: str) -> None:
    sqs.delete_queue(QueueUrl=url)


KINDS = (
    Kind(
        "stack",
        "cloudformation",
        ("describe_stacks", "Stacks", "StackName", ""),
        _delete_stack,
        0.55,
    ),
    Kind("table", "dynamodb", ("list_tables", "TableNames", "", ""), _delete_table, 0.01),
    Kind("rule", "events", ("list_rules", "Rules", "Name", "NamePrefix"), _delete_rule, 0),
    Kind("queue", "sqs", ("list_queues", "QueueUrls", "", "QueueNamePrefix"), _delete_queue, 0),
)
"""In the order of their deletion.

All else that a run makes belongs to a stack, and goes with it.
"""
