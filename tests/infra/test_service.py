"""The service's template: what cfn-lint does not know to be wrong."""

import json
import re
from typing import Any

from infra.build import ROOT
from service.add_from_queue.handler import wait_of
from service.api.local import CORS
from tests.infra import template
from tests.infra.template import listed, of_type, statements, target

NOTHING = {"Ref": "AWS::NoValue"}
FOURTEEN_DAYS_S = 1_209_600
HIDDEN_S = {"ChangesQueue": 900, "WorkQueue": 720}
"""The longest that a message is hidden from one receive to the next."""

HANDLERS = {
    "addFromQueue": "PACK ALLOWED_PREFIXES CHANGES_QUEUE_URL CHANGES_DLQ_URL OUTCOMES_URL",
    "api": "ALLOWED_PREFIXES",
    "ring": "WORK_QUEUE_URL RING_EVERY_S THRESHOLDS",
    "compact": "WORK_QUEUE_URL WORK_DLQ_URL THRESHOLDS THRESHOLD_BUS",
    "sweep": "WORK_QUEUE_URL SWEEP_HOURS THRESHOLDS",
    "canary": "",
}
PRODUCE: dict[str, Any] = {"Sid": "Produce", "Effect": "Allow", "Action": ["sqs:SendMessage"]}
PRODUCE |= {"Principal": {"AWS": {"Ref": "ProducerAccounts"}}, "Resource": {"Fn::GetAtt": ["ChangesQueue", "Arn"]}}
RATE = {"Ref": "ApiRate"}

PROPERTIES = (
    # resource             property                          value
    # Lambda stops a chain of messages at some 16: the retries of an outage of three hours, or a backlog of one lane.
    ("CompactLambdaFunction", "RecursiveLoop", "Allow"),
    (
        "CanaryLambdaFunction",
        "ReservedConcurrentExecutions",
        {"Fn::If": ["KeepsCanary", {"Ref": "ReservedCanary"}, NOTHING]},
    ),
    # A record of the stream that is given up may be a stray's, which is in no value until the sweep comes by.
    ("StreamToFunction", "MaximumRecordAgeInSeconds", -1),
    ("StreamToFunction", "MaximumRetryAttempts", -1),
    ("StreamToFunction", "BisectBatchOnFunctionError", True),
    ("StreamToFunction", "ParallelizationFactor", 1),
    ("StreamToFunction", "StartingPosition", "TRIM_HORIZON"),
    ("StreamToFunction", "DestinationConfig.OnFailure.Destination", {"Fn::GetAtt": ["FailedQueue", "Arn"]}),
    *(
        (f"{name}ToFunction", "FunctionResponseTypes", ["ReportBatchItemFailures"])
        for name in ("Stream", "Changes", "Work")
    ),
    # The alarms know the schedules; the next run does as much as a retry, and a sweep leaves its failure.
    ("SweepSchedule", "ScheduleExpression", "rate(15 minutes)"),
    ("CanarySchedule", "ScheduleExpression", "rate(5 minutes)"),
    *((f"{name}Failures", "MaximumRetryAttempts", 0) for name in ("Sweep", "Canary")),
    ("SweepFailures", "DestinationConfig.OnFailure.Destination", {"Fn::GetAtt": ["FailedQueue", "Arn"]}),
    *(("HttpApiStage", f"DefaultRouteSettings.Throttling{name}Limit", RATE) for name in ("Rate", "Burst")),
    ("HttpApiStage", "DefaultRouteSettings.DetailedMetricsEnabled", False),  # six metrics a route, which nothing reads
)
CONDITIONS = {
    # condition         of the parameter, by its default
    "KeepsCanary": ("ReservedCanary", 1),
    "HasOutcomes": ("Outcomes", "false"),
    "TellsThresholds": ("TellsThresholds", "false"),
    "HasProducers": ("ProducerAccounts", ""),
    "Cors": ("CorsOrigins", ""),
}


def test_what_must_be_so_is_so_and_what_is_optional_hangs_on_its_parameter(service: dict[str, Any]) -> None:
    for name, path, expected in PROPERTIES:
        found = service["Resources"][name]["Properties"]
        for key in path.split("."):
            found = found[key]
        assert found == expected, (name, path)
    loops = [name for name, each in of_type(service, "AWS::Lambda::Function").items() if "RecursiveLoop" in each]
    assert loops == ["CompactLambdaFunction"]
    for condition, (parameter, default) in CONDITIONS.items():
        assert f'"{parameter}"' in json.dumps(service["Conditions"][condition])
        assert template.framework()["params"]["default"][parameter[0].lower() + parameter[1:]] == default
    for name in ("OutcomesQueue", "PreflightRoute"):
        assert service["Resources"][name]["Condition"] == {"O": "HasOutcomes", "P": "Cors"}[name[0]]
    assert service["Outputs"]["OutcomesQueueUrl"] == {"Condition": "HasOutcomes", "Value": {"Ref": "OutcomesQueue"}}


def test_no_statement_allows_actions_by_a_pattern_or_a_resource_by_a_star_alone(service: dict[str, Any]) -> None:
    for name, statement in statements(service):
        assert not statement.keys() & {"NotAction", "NotResource"}, name
        if statement["Effect"] != "Deny":
            assert not [action for action in listed(statement["Action"]) if "*" in action], name
            assert "*" not in listed(statement["Resource"]), name


def test_every_function_has_a_role_and_a_log_of_its_own_and_is_given_its_environment(service: dict[str, Any]) -> None:
    config = template.framework()
    declared, functions = config["functions"], of_type(service, "AWS::Lambda::Function")
    roles = of_type(service, "AWS::IAM::Role")
    assert set(declared) == set(HANDLERS)
    assert len(functions) == len(roles) == len(HANDLERS)
    for key, variables in HANDLERS.items():
        name = key[0].upper() + key[1:]
        function = functions[f"{name}LambdaFunction"]
        assert target(function["Role"]) == f"{name}Role"
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"]), name
        folder = re.sub(r"([A-Z])", r"_\1", key).lower()
        slug = folder.replace("_", "-")
        assert declared[key]["handler"] == f"service.{folder}.main.handler"
        assert declared[key]["name"].endswith(f"-{slug}")
        given = declared[key].get("environment", {})
        assert sorted(given) == sorted(f"LEDGER_{each}" for each in variables.split()), name
        own = roles[f"{name}Role"]["Policies"][0]["PolicyDocument"]["Statement"]
        (log,) = [each for each in own if "logs:PutLogEvents" in each.get("Action", [])]
        assert log["Resource"]["Fn::Sub"].endswith(f":/aws/lambda/${{Name}}-${{Stage}}-{slug}:*")
        assert not declared[key].get("disableLogs")
    assert declared["compact"]["environment"]["LEDGER_WORK_DLQ_URL"] == {"Ref": "WorkDeadLetterQueue"}
    outcomes = declared["addFromQueue"]["environment"]["LEDGER_OUTCOMES_URL"]
    assert outcomes == {"Fn::If": ["HasOutcomes", {"Ref": "OutcomesQueue"}, ""]}
    assert config["provider"]["logRetentionInDays"] == "${param:logRetentionDays}"
    assert all(group["RetentionInDays"] for group in of_type(service, "AWS::Logs::LogGroup").values())


def test_a_message_is_among_the_dead_letters_before_its_queue_gives_it_up(service: dict[str, Any]) -> None:
    queues, letters = of_type(service, "AWS::SQS::Queue"), set[str]()
    for name, hidden_s in HIDDEN_S.items():
        policy, kept_s = queues[name]["RedrivePolicy"], queues[name]["MessageRetentionPeriod"]
        worst_s = policy["maxReceiveCount"] * max(hidden_s, queues[name]["VisibilityTimeout"])
        assert 1.5 * worst_s < kept_s <= FOURTEEN_DAYS_S, name
        assert FOURTEEN_DAYS_S - worst_s > 7 * 86_400, f"{name}: a week is left to look at a dead letter"
        letters.add(target(policy["deadLetterTargetArn"]))
    assert letters == {"ChangesDeadLetterQueue", "WorkDeadLetterQueue"}
    last = letters | {"FailedQueue", "OutcomesQueue"}
    assert {queues[name]["MessageRetentionPeriod"] for name in last} == {FOURTEEN_DAYS_S}
    assert set(queues) == last | set(HIDDEN_S)


def test_a_good_change_is_tried_for_days_before_it_is_a_dead_letter(service: dict[str, Any]) -> None:
    """By the shortest waits that the function draws; and for a day where the function crashes on it."""
    queue = of_type(service, "AWS::SQS::Queue")["ChangesQueue"]
    receives = queue["RedrivePolicy"]["maxReceiveCount"]
    records = ({"attributes": {"ApproximateReceiveCount": str(number)}} for number in range(1, receives))
    assert sum(wait_of(record, 0.999) for record in records) > 4 * 86_400
    assert (receives - 1) * queue["VisibilityTimeout"] > 86_400


def test_every_queue_is_encrypted_reached_by_tls_alone_and_by_the_accounts_that_are_named(
    service: dict[str, Any],
) -> None:
    queues, policies = of_type(service, "AWS::SQS::Queue"), of_type(service, "AWS::SQS::QueuePolicy")
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    named = [each["Fn::If"][1] if "Fn::If" in each else each for p in policies.values() for each in p["Queues"]]
    assert sorted(map(target, named)) == sorted(queues), "a queue has one policy: the last one written wins"
    for policy in policies.values():
        plain = policy["PolicyDocument"]["Statement"][0]
        assert (plain["Effect"], plain["Principal"], plain["Action"]) == ("Deny", "*", "sqs:*")
        assert plain["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    allowed = [each for name, each in statements(service) if name in policies and each["Effect"] == "Allow"]
    assert allowed == [PRODUCE]
    assert policies["ChangesQueuePolicy"]["PolicyDocument"]["Statement"][1]["Fn::If"][0] == "HasProducers"


def test_queues_gather_in_a_window_and_hide_six_times_a_functions_time(service: dict[str, Any]) -> None:
    queues, functions = of_type(service, "AWS::SQS::Queue"), of_type(service, "AWS::Lambda::Function")
    for name in ("ChangesToFunction", "WorkToFunction"):
        mapping = of_type(service, "AWS::Lambda::EventSourceMapping")[name]
        assert mapping["ScalingConfig"]["MaximumConcurrency"], name
        assert (mapping["BatchSize"] > 10, mapping["MaximumBatchingWindowInSeconds"]) == (True, 1), "SQS asks for one"
        hidden_s = queues[target(mapping["EventSourceArn"])]["VisibilityTimeout"]
        assert hidden_s >= 6 * functions[target(mapping["FunctionName"])]["Timeout"], name
    assert service["Parameters"]["ChangesPack"]["AllowedValues"] == ["true", "false"]  # which main.py knows


def test_the_stream_hands_over_what_its_region_folds_and_what_values_are_read_from_where_thresholds_are_reported(
    service: dict[str, Any],
) -> None:
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    first, *others = stream["FilterCriteria"]["Filters"]
    assert [(each["Fn::If"][0], each["Fn::If"][2]) for each in others] == [("TellsThresholds", NOTHING)] * 2
    patterns = [each["Pattern"] for each in (first, *(each["Fn::If"][1] for each in others))]
    found = [json.loads(each["Fn::Sub"] if isinstance(each, dict) else each) for each in patterns]
    keys = [[prefix["prefix"] for prefix in each["dynamodb"]["Keys"]["pk"]["S"]] for each in found]
    here = ["delta#${AWS::Region}#", "gate#${AWS::Region}#"]
    assert keys == [here, ["delta#", "gate#", "crossing#${AWS::Region}#"], ["fold#"]]
    assert [each["eventName"] for each in found] == [["INSERT"], ["INSERT", "MODIFY"], ["INSERT", "MODIFY"]]
    assert found[2]["dynamodb"]["Keys"]["sk"] == {"S": ["checkpoint"]}


def test_every_scheduled_function_may_be_called_by_its_schedule(service: dict[str, Any]) -> None:
    permissions = of_type(service, "AWS::Lambda::Permission").values()
    sources = [each for each in permissions if "Fn::GetAtt" in each["SourceArn"]]
    allowed = {(target(each["FunctionName"]), target(each["SourceArn"])) for each in sources}
    for name, rule in of_type(service, "AWS::Events::Rule").items():
        assert (target(rule["Targets"][0]["Arn"]), name) in allowed


def test_no_route_is_open_and_what_is_not_plainly_a_read_needs_the_scope_that_adds(service: dict[str, Any]) -> None:
    routes = of_type(service, "AWS::ApiGatewayV2::Route")
    for name, route in routes.items():
        if route["RouteKey"].startswith("OPTIONS "):
            continue  # a preflight carries no credentials, and reads and writes nothing
        assert route["AuthorizationType"] == {"Fn::If": ["Jwt", "JWT", "AWS_IAM"]}, name
        assert route["AuthorizerId"]["Fn::If"][:2] == ["Jwt", {"Ref": "JwtAuthorizer"}], name
        kind = "JwtRead" if route["RouteKey"].startswith(("GET ", "HEAD ")) else "JwtWrite"
        assert route["AuthorizationScopes"]["Fn::If"][:2] == [kind, [{"Ref": f"{kind}Scope"}]], name
    keys = {route["RouteKey"] for route in routes.values()}
    assert {"$default", "OPTIONS /{path+}"} <= keys
    described = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))["paths"]
    for path, methods in described.items():  # else it falls to $default, which asks a reader for the scope that adds
        for method in methods:
            asked = [method.upper(), "HEAD"] if method == "get" else [method.upper()]
            assert {f"{each} {re.sub('{counter}.*', '{path+}', path)}" for each in asked} <= keys, path


def test_the_api_answers_pages_of_named_origins_alone_and_keeps_a_log_of_who_asked(service: dict[str, Any]) -> None:
    (api,) = of_type(service, "AWS::ApiGatewayV2::Api").values()
    condition, open_to, closed = api["CorsConfiguration"]["Fn::If"]
    assert (condition, closed, open_to["AllowOrigins"]) == ("Cors", NOTHING, {"Ref": "CorsOrigins"})
    assert not open_to.get("AllowCredentials")
    assert open_to["AllowMethods"] == CORS["Access-Control-Allow-Methods"].split(",")
    assert {name.lower() for name in open_to["AllowHeaders"]} >= {"authorization", "content-type", "idempotency-key"}
    assert open_to["ExposeHeaders"] == CORS["Access-Control-Expose-Headers"].split(",")
    (stage,) = of_type(service, "AWS::ApiGatewayV2::Stage").values()
    log = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"caller", "subject", "status"} <= log.keys()
    assert "$context.path" not in log.values()  # it holds the counter's name
