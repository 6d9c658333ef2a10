"""The deployer's policy documents are what the templates' types and the deployer itself ask for,
and no more.

What a type asks for is AWS's own word: its handlers' permissions in the CloudFormation registry,
for the properties that are used here; and of a role that HTTP API logging names. The framework
gives each stack the tag STAGE, hence tags.
"""

import fnmatch
import functools
import json
import re
from pathlib import Path
from typing import Any, get_args

import cfnlint  # type: ignore[import-untyped]

from infra.deployment import deployment
from infra.preflight.flight import Flight
from infra.preflight.simulated import Document, Values, document
from infra.table_template import Capacity, template_of
from tests.infra.aws import HOME, OTHER
from tests.infra.recorded import ACCOUNT

FLIGHT = Flight(
    deployment("ledger", "dev", f"{HOME} {OTHER}", ""), f"arn:aws:iam::{ACCOUNT}:user/me", {}
)
API = "apigateway: DELETE GET PATCH POST PUT"
NEEDS = {
    "AWS::ApiGatewayV2::Api": API,
    "AWS::ApiGatewayV2::Authorizer": API,
    "AWS::ApiGatewayV2::Integration": API,
    "AWS::ApiGatewayV2::Route": API,
    "AWS::ApiGatewayV2::Stage": f"{API} logs: CreateLogDelivery DeleteLogDelivery "
    "DescribeLogGroups DescribeResourcePolicies GetLogDelivery "
    "ListLogDeliveries PutResourcePolicy UpdateLogDelivery",
    "AWS::CloudWatch::Alarm": (
        "cloudwatch: DeleteAlarms DescribeAlarms ListTagsForResource PutMetricAlarm TagResource"
    ),
    "AWS::CloudWatch::Dashboard": "cloudwatch: DeleteDashboards GetDashboard PutDashboard",
    "AWS::DynamoDB::GlobalTable": "dynamodb: BatchWriteItem CreateTable CreateTableReplica "
    "DeleteItem DeleteTable DeleteTableReplica "
    "DescribeContinuousBackups DescribeContributorInsights "
    "DescribeKinesisStreamingDestination DescribeTable "
    "DescribeTableReplicaAutoScaling DescribeTimeToLive GetItem "
    "GetResourcePolicy ListTagsOfResource PutItem Query Scan "
    "TagResource UpdateContinuousBackups UpdateItem UpdateTable "
    "UpdateTableReplicaAutoScaling UpdateTimeToLive iam: "
    "CreateServiceLinkedRole application-autoscaling: "
    "DeleteScalingPolicy DeregisterScalableTarget "
    "DescribeScalableTargets DescribeScalingPolicies "
    "DescribeScheduledActions PutScalingPolicy "
    "RegisterScalableTarget",
    "AWS::Events::Rule": "events: DeleteRule DescribeRule ListTargetsByRule PutRule PutTargets "
    "RemoveTargets TagResource",
    "AWS::IAM::ManagedPolicy": "iam: CreatePolicy CreatePolicyVersion DeletePolicy "
    "DeletePolicyVersion GetPolicy GetPolicyVersion "
    "ListEntitiesForPolicy ListPolicyVersions TagPolicy",
    "AWS::IAM::Role": "iam: AttachRolePolicy CreateRole DeleteRole DeleteRolePolicy "
    "DetachRolePolicy GetRole GetRolePolicy ListAttachedRolePolicies "
    "ListRolePolicies PutRolePolicy TagRole UpdateAssumeRolePolicy",
    "AWS::Lambda::EventInvokeConfig": "lambda: DeleteFunctionEventInvokeConfig "
    "GetFunctionEventInvokeConfig PutFunctionEventInvokeConfig "
    "UpdateFunctionEventInvokeConfig",
    "AWS::Lambda::EventSourceMapping": "lambda: CreateEventSourceMapping DeleteEventSourceMapping "
    "GetEventSourceMapping TagResource UpdateEventSourceMapping",
    "AWS::Lambda::Function": "lambda: CreateFunction DeleteFunction DeleteFunctionConcurrency "
    "GetFunction GetFunctionCodeSigningConfig GetFunctionConfiguration "
    "GetFunctionRecursionConfig GetRuntimeManagementConfig ListTags "
    "PutFunctionConcurrency PutFunctionRecursionConfig TagResource "
    "UpdateFunctionCode UpdateFunctionConfiguration iam: PassRole s3: "
    "GetObject",
    "AWS::Lambda::Permission": "lambda: AddPermission GetPolicy RemovePermission",
    "AWS::Logs::LogGroup": "logs: CreateLogGroup DeleteLogGroup DescribeLogGroups "
    "GetDataProtectionPolicy ListTagsForResource PutRetentionPolicy "
    "TagResource",
    "AWS::S3::Bucket": "s3: CreateBucket DeleteBucket GetBucketPublicAccessBlock GetBucketTagging "
    "GetEncryptionConfiguration PutBucketPublicAccessBlock PutBucketTagging "
    "PutEncryptionConfiguration",
    "AWS::S3::BucketPolicy": "s3: DeleteBucketPolicy GetBucketPolicy PutBucketPolicy",
    "AWS::SNS::Subscription": (
        "sns: GetSubscriptionAttributes ListSubscriptionsByTopic Subscribe Unsubscribe"
    ),
    "AWS::SNS::Topic": "sns: CreateTopic DeleteTopic GetDataProtectionPolicy GetTopicAttributes "
    "ListSubscriptionsByTopic ListTagsForResource SetTopicAttributes TagResource",
    "AWS::SNS::TopicPolicy": "sns: SetTopicAttributes",
    "AWS::SQS::Queue": "sqs: CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags "
    "SetQueueAttributes TagQueue",
    "AWS::SQS::QueuePolicy": "sqs: SetQueueAttributes",
    # who asks besides CloudFormation
    "infra and the framework": "cloudformation: CreateChangeSet CreateStack DeleteChangeSet "
    "DeleteStack DescribeChangeSet DescribeStackEvents "
    "DescribeStackResource DescribeStackResources DescribeStacks "
    "ExecuteChangeSet GetTemplate ListStackResources UpdateStack "
    "UpdateTerminationProtection ValidateTemplate lambda: "
    "GetAccountSettings InvokeFunction s3: DeleteObject "
    "GetBucketLocation ListBucket PutObject",
    "preflight": "iam: GetRole SimulateCustomPolicy SimulatePrincipalPolicy servicequotas: "
    "GetAWSDefaultServiceQuota GetServiceQuota sqs: ListQueues",
}
BUCKET = ("AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::Logs::LogGroup")
"""What the framework adds to a source."""
CHARACTERS = 6_144


def actions(*types: str) -> set[str]:
    found, service = set(), ""
    for word in " ".join(NEEDS[each] for each in types).split():
        if word.endswith(":"):
            service = word
        else:
            found.add(f"{service}{word}")
    return found


@functools.cache
def reference() -> Any:
    """cfn-lint's copy of AWS's service authorization reference."""
    return json.loads(
        (Path(cfnlint.__file__).parent / "data" / "AdditionalSpecs" / "Policies.json").read_text()
    )


def statements() -> list[Any]:
    return [each for which in get_args(Document) for each in document(FLIGHT, which)["Statement"]]


def test_the_documents_allow_what_the_templates_need_alone(
    service: Any,
) -> None:
    table = json.loads(template_of(2, Capacity()))
    there = {
        each["Type"] for each in [*service["Resources"].values(), *table["Resources"].values()]
    } | {*BUCKET}
    assert there == {each for each in NEEDS if each.startswith("AWS::")}
    assert {action for each in statements() for action in each["Action"]} == actions(*NEEDS)
    for which in get_args(Document):
        assert len("".join(json.dumps(document(FLIGHT, which)).split())) < CHARACTERS, (
            f"{which}: AWS takes no more"
        )


def pattern(form: str) -> str:
    return re.sub(r"\$\{\w+\}", "[^:]*", form)


def test_an_action_is_one_that_aws_knows_on_its_resource() -> None:
    """One that takes no resource would never be allowed by a statement that names some."""
    for statement in statements():
        for service, action in (each.split(":") for each in statement["Action"]):
            kinds = {
                plain(each)
                for each in reference()[service]["Actions"][action.lower()].get("Resources", [])
            }
            known = reference()[service].get("Resources", {}).items()
            forms = [
                form for kind, each in known if plain(kind) in kinds for form in each["ARNFormats"]
            ]
            named = [arn for arn in statement["Resource"] if arn != "*"]
            fits = any(re.fullmatch(pattern(form), arn) for form in forms for arn in named)
            assert fits or not named, (action, named)


def plain(kind: str) -> str:
    return re.sub("[^a-z]", "", kind.lower())


NAMED = {
    "AWS::Lambda::Function": ("FunctionName", "lambda:{region}:{account}:function:{name}"),
    "AWS::SQS::Queue": ("QueueName", "sqs:{region}:{account}:{name}"),
    "AWS::Logs::LogGroup": ("LogGroupName", "logs:{region}:{account}:log-group:{name}"),
    "AWS::SNS::Topic": ("TopicName", "sns:{region}:{account}:{name}"),
    "AWS::Events::Rule": ("Name", "events:{region}:{account}:rule/{name}"),
    "AWS::CloudWatch::Alarm": ("AlarmName", "cloudwatch:{region}:{account}:alarm:{name}"),
    "AWS::CloudWatch::Dashboard": ("DashboardName", "cloudwatch::{account}:dashboard/{name}"),
}


def test_the_documents_cover_every_name_that_the_templates_give(service: Any) -> None:
    values, count = Values(FLIGHT, OTHER), 0
    for each in service["Resources"].values():
        key, form = NAMED.get(each["Type"], ("", ""))
        if key in each.get("Properties", {}):
            count += 1
            arn = "arn:aws:" + form.format(
                region=OTHER, account=ACCOUNT, name=values.of(each["Properties"][key])
            )
            allowed = {
                action
                for statement in statements()
                if any(fnmatch.fnmatchcase(arn, resource) for resource in statement["Resource"])
                for action in statement["Action"]
            }
            assert (
                actions(each["Type"]) - {"iam:PassRole", "logs:DescribeLogGroups", "s3:GetObject"}
                <= allowed
            ), arn
    assert count > 30
