"""The service's template: what cfn-lint does not know to be wrong."""

import json
import re
from typing import Any

from infra.build import ROOT
from service.api import cors
from tests.infra import template
from tests.infra.template import listed, of_type, statements

FUNCTIONS = {"AddFromQueue", "Api", "Mark", "Plan", "Compact", "Find"}
LAST_STOPS = {"ChangesDeadLetterQueue", "WorkDeadLetterQueue", "FailedQueue"}
ANY_RESOURCE = {("xray:PutTraceSegments", "xray:PutTelemetryRecords"), ("sqs:*",)}  # the latter denies plain HTTP
FOURTEEN_DAYS_S = 1_209_600


def _target(value: Any) -> str:
    """The logical name behind a Ref or GetAtt."""
    return str(value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0])


def _number(service: dict[str, Any], value: Any) -> int:
    """A number, also behind a parameter or a framework variable with a default in serverless.yml."""
    if isinstance(value, dict):
        value = service["Parameters"][value["Ref"]]["Default"]
    if variable := re.search(r"param:(\w+)\}$", str(value)):
        value = template.framework()["params"]["default"][variable[1]]
    return int(value)


def test_no_statement_allows_actions_by_a_pattern(service: dict[str, Any]) -> None:
    for name, statement in statements(service):
        if statement["Effect"] == "Allow":
            assert not [action for action in listed(statement["Action"]) if "*" in action], name


def test_every_resource_stands_only_where_iam_knows_none(service: dict[str, Any]) -> None:
    for name, statement in statements(service):
        assert "NotAction" not in statement
        assert "NotResource" not in statement
        if "*" in listed(statement["Resource"]):
            assert tuple(listed(statement["Action"])) in ANY_RESOURCE, name


def test_every_item_request_is_cut_to_partition_keys_and_fails_without_keys(service: dict[str, Any]) -> None:
    keyless = {"dynamodb:Scan", "dynamodb:DescribeStream", "dynamodb:GetRecords"}
    keyless |= {"dynamodb:GetShardIterator", "dynamodb:ListStreams"}
    for name, statement in statements(service):
        actions = {action for action in listed(statement["Action"]) if action.startswith("dynamodb:")} - keyless
        if actions:
            condition = statement["Condition"]
            assert condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"], name
            assert condition["Null"] == {"dynamodb:LeadingKeys": "false"}, name


def test_every_function_has_a_role_of_its_own_that_writes_its_own_log_alone(service: dict[str, Any]) -> None:
    functions = of_type(service, "AWS::Lambda::Function")
    assert {_target(function["Role"]) for function in functions.values()} == {f"{name}Role" for name in FUNCTIONS}
    for name, role in of_type(service, "AWS::IAM::Role").items():
        told = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if each.get("Sid") == "Tell"]
        slug = re.sub(r"(?<!^)(?=[A-Z])", "-", name.removesuffix("Role")).lower()
        assert told[0]["Resource"]["Fn::Sub"].endswith(f":/aws/lambda/${{Name}}-${{Stage}}-{slug}:*")


def test_every_function_is_traced_and_runs_on_arm_and_python_3_13(service: dict[str, Any]) -> None:
    functions = of_type(service, "AWS::Lambda::Function")
    assert {name.removesuffix("LambdaFunction") for name in functions} == FUNCTIONS
    for name, function in functions.items():
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"]), name
        assert function["TracingConfig"] == {"Mode": "Active"}, name


def test_every_log_is_deleted_one_day(service: dict[str, Any]) -> None:
    for name, group in of_type(service, "AWS::Logs::LogGroup").items():
        assert group["RetentionInDays"], name


def test_the_framework_makes_a_log_group_with_retention_for_every_function() -> None:
    config = template.framework()
    assert config["provider"]["logRetentionInDays"] == "${param:logRetentionDays}"
    assert not [name for name, function in config["functions"].items() if function.get("disableLogs")]
    for region, service in template.packaged():
        named = [group["LogGroupName"] for group in of_type(service, "AWS::Logs::LogGroup").values()]
        for function in of_type(service, "AWS::Lambda::Function").values():
            assert f"/aws/lambda/{function['FunctionName']}" in named, region


def test_every_queue_has_a_dead_letter_queue_that_keeps_longer(service: dict[str, Any]) -> None:
    queues = of_type(service, "AWS::SQS::Queue")
    for name, queue in queues.items():
        if name in LAST_STOPS:
            assert queue["MessageRetentionPeriod"] == FOURTEEN_DAYS_S, name
        else:
            letters = _target(queue["RedrivePolicy"]["deadLetterTargetArn"])
            assert letters in LAST_STOPS, name
            assert queue["RedrivePolicy"]["maxReceiveCount"] == 5
            assert queue["MessageRetentionPeriod"] < queues[letters]["MessageRetentionPeriod"], name


def test_a_message_stays_hidden_for_six_times_as_long_as_its_function_may_run(service: dict[str, Any]) -> None:
    queues, functions = of_type(service, "AWS::SQS::Queue"), of_type(service, "AWS::Lambda::Function")
    for mapping in of_type(service, "AWS::Lambda::EventSourceMapping").values():
        if "Ref" not in mapping["EventSourceArn"]:
            hidden = queues[_target(mapping["EventSourceArn"])]["VisibilityTimeout"]
            assert _number(service, hidden) >= 6 * functions[_target(mapping["FunctionName"])]["Timeout"]


def test_queues_give_failures_back_one_by_one_and_bound_their_concurrency(service: dict[str, Any]) -> None:
    mappings = of_type(service, "AWS::Lambda::EventSourceMapping")
    for name in ("ChangesToFunction", "WorkToFunction"):
        assert mappings[name]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert _number(service, mappings[name]["ScalingConfig"]["MaximumConcurrency"]) >= 2
    assert _number(service, mappings["ChangesToFunction"]["BatchSize"]) > 10  # which needs the window
    assert mappings["ChangesToFunction"]["MaximumBatchingWindowInSeconds"] == 1


def test_the_stream_hands_over_new_deltas_of_its_own_region_alone_and_gives_up_in_the_end(
    service: dict[str, Any],
) -> None:
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    pattern = json.loads(stream["FilterCriteria"]["Filters"][0]["Pattern"]["Fn::Sub"])
    assert pattern["eventName"] == ["INSERT"]
    assert pattern["dynamodb"]["Keys"]["pk"]["S"] == [{"prefix": "delta#${AWS::Region}#"}]
    assert stream["BisectBatchOnFunctionError"] is True
    assert 0 < stream["MaximumRecordAgeInSeconds"] <= 3_600
    assert _target(stream["DestinationConfig"]["OnFailure"]["Destination"]) == "FailedQueue"
    assert stream["StartingPosition"] == "TRIM_HORIZON"


def test_every_scheduled_function_may_be_called_and_leaves_its_failures(service: dict[str, Any]) -> None:
    allowed = {
        (_target(each["FunctionName"]), _target(each["SourceArn"]))
        for each in of_type(service, "AWS::Lambda::Permission").values()
        if "Fn::GetAtt" in each["SourceArn"]
    }
    failures = {
        _target(each["FunctionName"]): _target(each["DestinationConfig"]["OnFailure"]["Destination"])
        for each in of_type(service, "AWS::Lambda::EventInvokeConfig").values()
    }
    rules = of_type(service, "AWS::Events::Rule")
    assert set(rules) == {"PlanSchedule", "FindSchedule"}
    for name, rule in rules.items():
        function = _target(rule["Targets"][0]["Arn"])
        assert (function, name) in allowed
        assert failures[function] == "FailedQueue"


def test_no_route_is_open(service: dict[str, Any]) -> None:
    routes = of_type(service, "AWS::ApiGatewayV2::Route")
    for name, route in routes.items():
        if route["RouteKey"].startswith("OPTIONS "):
            continue  # a preflight carries no credentials, and reads and writes nothing
        assert route["AuthorizationType"] == {"Fn::If": ["Jwt", "JWT", "AWS_IAM"]}, name
        assert route["AuthorizerId"]["Fn::If"][:2] == ["Jwt", {"Ref": "JwtAuthorizer"}], name
    assert "$default" in {route["RouteKey"] for route in routes.values()}


def test_what_is_not_plainly_a_read_needs_the_scope_that_adds(service: dict[str, Any]) -> None:
    for name, route in of_type(service, "AWS::ApiGatewayV2::Route").items():
        if route["RouteKey"].startswith("OPTIONS "):
            continue
        kind = "JwtRead" if route["RouteKey"].startswith(("GET ", "HEAD ")) else "JwtWrite"
        assert route["AuthorizationScopes"]["Fn::If"][:2] == [kind, [{"Ref": f"{kind}Scope"}]], name


def test_every_request_of_the_description_has_a_route_of_its_own(service: dict[str, Any]) -> None:
    """Else it falls to $default, which asks a reader for the scope that adds."""
    routes = {route["RouteKey"] for route in of_type(service, "AWS::ApiGatewayV2::Route").values()}
    described = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))["paths"]
    for path, methods in described.items():
        for method in methods:
            asked = [method.upper(), "HEAD"] if method == "get" else [method.upper()]
            assert {f"{each} {re.sub('{counter}.*', '{path+}', path)}" for each in asked} <= routes, path


def test_no_page_of_another_origin_may_call_unless_the_deployment_names_it(service: dict[str, Any]) -> None:
    (api,) = of_type(service, "AWS::ApiGatewayV2::Api").values()
    assert api["CorsConfiguration"]["Fn::If"][0] == "Cors"
    open_to, closed = api["CorsConfiguration"]["Fn::If"][1:]
    assert closed == {"Ref": "AWS::NoValue"}
    assert open_to["AllowOrigins"] == {"Ref": "CorsOrigins"}
    assert not open_to.get("AllowCredentials")
    assert open_to["AllowMethods"] == cors.METHODS.split(",")
    assert {name.lower() for name in open_to["AllowHeaders"]} >= {"authorization", "content-type", "idempotency-key"}
    assert open_to["ExposeHeaders"] == cors.ANSWERED
    assert template.framework()["params"]["default"]["corsOrigins"] == ""
    (preflight,) = [
        name
        for name, route in of_type(service, "AWS::ApiGatewayV2::Route").items()
        if route["RouteKey"] == "OPTIONS /{path+}"
    ]
    assert service["Resources"][preflight]["Condition"] == "Cors"


def test_the_api_is_throttled_and_keeps_a_log_of_who_asked(service: dict[str, Any]) -> None:
    (stage,) = of_type(service, "AWS::ApiGatewayV2::Stage").values()
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == {"Ref": "ApiRate"}
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] == {"Ref": "ApiBurst"}
    log = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"caller", "subject", "status"} <= log.keys()
    assert "$context.path" not in log.values()  # it holds the counter's name
