"""The service's template: what cfn-lint does not know to be wrong."""

import json
import re
from typing import Any

from infra.build import ROOT
from service.add_from_queue.waits import wait_of
from service.api import cors
from tests.infra import template
from tests.infra.template import listed, of_type, statements

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


def _target(value: Any) -> str:
    """The logical name behind a Ref or GetAtt."""
    return str(value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0])


def _default(name: str) -> Any:
    return template.framework()["params"]["default"][name]


def _of_parameter(service: dict[str, Any], condition: str) -> Any:
    """What is compared with what by a condition."""
    found = service["Conditions"][condition]
    return found.get("Fn::Equals") or found["Fn::Not"][0]["Fn::Equals"]


def test_no_statement_allows_more_than_it_names(service: dict[str, Any]) -> None:
    """No actions by a pattern; no resource by a star alone; items by partition keys, and by some key."""
    of_streams = {
        f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    }
    for name, statement in statements(service):
        assert not statement.keys() & {"NotAction", "NotResource"}, name
        actions = listed(statement["Action"])
        if statement["Effect"] == "Deny":
            continue
        assert not [action for action in actions if "*" in action], name
        assert "*" not in listed(statement["Resource"]), name
        if {action for action in actions if action.startswith("dynamodb:")} - of_streams:
            condition = statement["Condition"]
            assert condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"], name
            assert condition["Null"] == {"dynamodb:LeadingKeys": "false"}, name


def test_every_function_has_a_role_of_its_own_that_writes_its_own_log_and_is_given_its_environment(
    service: dict[str, Any],
) -> None:
    declared = template.framework()["functions"]
    assert set(declared) == set(HANDLERS)
    functions, roles = of_type(service, "AWS::Lambda::Function"), of_type(service, "AWS::IAM::Role")
    assert len(functions) == len(roles) == len(HANDLERS)
    for key, variables in HANDLERS.items():
        name = key[0].upper() + key[1:]
        function = functions[f"{name}LambdaFunction"]
        assert _target(function["Role"]) == f"{name}Role"
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"]), name
        folder = re.sub(r"([A-Z])", r"_\1", key).lower()
        slug = folder.replace("_", "-")
        assert declared[key]["handler"] == f"service.{folder}.main.handler"
        assert declared[key]["name"].endswith(f"-{slug}")
        given = declared[key].get("environment", {})
        assert sorted(given) == sorted(f"LEDGER_{each}" for each in variables.split()), name
        (log,) = [
            each
            for each in roles[f"{name}Role"]["Policies"][0]["PolicyDocument"]["Statement"]
            if "logs:PutLogEvents" in each.get("Action", [])
        ]
        assert log["Resource"]["Fn::Sub"].endswith(f":/aws/lambda/${{Name}}-${{Stage}}-{slug}:*")
    assert declared["compact"]["environment"]["LEDGER_WORK_DLQ_URL"] == {"Ref": "WorkDeadLetterQueue"}


def test_the_compactor_alone_may_go_on_with_messages_that_it_sent_and_canaries_come_one_at_a_time(
    service: dict[str, Any],
) -> None:
    """Lambda stops such a chain at some 16: the retries of an outage of three hours, or a backlog of one lane."""
    functions = of_type(service, "AWS::Lambda::Function")
    loops = {name: each["RecursiveLoop"] for name, each in functions.items() if "RecursiveLoop" in each}
    assert loops == {"CompactLambdaFunction": "Allow"}
    kept = {"Fn::If": ["KeepsCanary", {"Ref": "ReservedCanary"}, NOTHING]}
    assert functions["CanaryLambdaFunction"]["ReservedConcurrentExecutions"] == kept
    assert (_default("reservedCanary"), _of_parameter(service, "KeepsCanary")) == (1, [{"Ref": "ReservedCanary"}, "0"])


def test_every_log_is_deleted_one_day(service: dict[str, Any]) -> None:
    assert all(group["RetentionInDays"] for group in of_type(service, "AWS::Logs::LogGroup").values())
    config = template.framework()
    assert config["provider"]["logRetentionInDays"] == "${param:logRetentionDays}"
    assert not [name for name, function in config["functions"].items() if function.get("disableLogs")]
    for region, packaged in template.packaged():
        named = [group["LogGroupName"] for group in of_type(packaged, "AWS::Logs::LogGroup").values()]
        for function in of_type(packaged, "AWS::Lambda::Function").values():
            assert f"/aws/lambda/{function['FunctionName']}" in named, region


def test_a_message_is_among_the_dead_letters_before_its_queue_gives_it_up(service: dict[str, Any]) -> None:
    queues, letters = of_type(service, "AWS::SQS::Queue"), set[str]()
    for name, hidden_s in HIDDEN_S.items():
        policy, kept_s = queues[name]["RedrivePolicy"], queues[name]["MessageRetentionPeriod"]
        worst_s = policy["maxReceiveCount"] * max(hidden_s, queues[name]["VisibilityTimeout"])
        assert 1.5 * worst_s < kept_s <= FOURTEEN_DAYS_S, name
        assert FOURTEEN_DAYS_S - worst_s > 7 * 86_400, f"{name}: a week is left to look at a dead letter"
        letters.add(_target(policy["deadLetterTargetArn"]))
    assert letters == {"ChangesDeadLetterQueue", "WorkDeadLetterQueue"}
    for name in letters | {"FailedQueue", "OutcomesQueue"}:
        assert queues[name]["MessageRetentionPeriod"] == FOURTEEN_DAYS_S, name
    assert set(queues) == letters | {"FailedQueue", "OutcomesQueue", *HIDDEN_S}


def test_a_good_change_is_tried_for_days_before_it_is_a_dead_letter(service: dict[str, Any]) -> None:
    """By the shortest waits that the function draws; and for a day where the function crashes on it."""
    queue = of_type(service, "AWS::SQS::Queue")["ChangesQueue"]
    receives = queue["RedrivePolicy"]["maxReceiveCount"]
    records = ({"attributes": {"ApproximateReceiveCount": str(number)}} for number in range(1, receives))
    hidden = [wait_of(record, 0.999) for record in records]
    assert sum(hidden) > 4 * 86_400
    assert (receives - 1) * queue["VisibilityTimeout"] > 86_400


def test_every_queue_is_encrypted_reached_by_tls_alone_and_by_the_accounts_that_are_named(
    service: dict[str, Any],
) -> None:
    queues, policies = of_type(service, "AWS::SQS::Queue"), of_type(service, "AWS::SQS::QueuePolicy")
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    named = [each["Fn::If"][1] if "Fn::If" in each else each for p in policies.values() for each in p["Queues"]]
    assert sorted(map(_target, named)) == sorted(queues), "a queue has one policy: the last one written wins"
    for policy in policies.values():
        plain = policy["PolicyDocument"]["Statement"][0]
        assert (plain["Effect"], plain["Principal"], plain["Action"]) == ("Deny", "*", "sqs:*")
        assert plain["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    allowed = [(name, each) for name, each in statements(service) if "Policy" in name and each["Effect"] == "Allow"]
    changes: dict[str, Any] = {"Sid": "Produce", "Effect": "Allow", "Action": ["sqs:SendMessage"]}
    changes |= {"Principal": {"AWS": {"Ref": "ProducerAccounts"}}, "Resource": {"Fn::GetAtt": ["ChangesQueue", "Arn"]}}
    assert [each for name, each in allowed if name in policies] == [changes]
    assert policies["ChangesQueuePolicy"]["PolicyDocument"]["Statement"][1]["Fn::If"][0] == "HasProducers"
    assert _of_parameter(service, "HasProducers") == [{"Fn::Join": ["", {"Ref": "ProducerAccounts"}]}, ""]
    assert _default("producerAccounts") == ""


def test_a_queue_of_outcomes_is_there_when_it_is_asked_for_and_add_from_queue_alone_sends_to_it(
    service: dict[str, Any],
) -> None:
    queue = "OutcomesQueue"
    assert (_default("outcomes"), _of_parameter(service, "HasOutcomes")) == ("false", [{"Ref": "Outcomes"}, "true"])
    assert service["Resources"][queue]["Condition"] == "HasOutcomes"
    assert service["Outputs"]["OutcomesQueueUrl"] == {"Condition": "HasOutcomes", "Value": {"Ref": queue}}
    arn = {"Fn::GetAtt": [queue, "Arn"]}
    assert [name for name, each in statements(service) if arn in listed(each["Resource"])] == ["AddFromQueueRole"]
    given = {"Fn::If": ["HasOutcomes", {"Ref": queue}, ""]}
    assert template.framework()["functions"]["addFromQueue"]["environment"]["LEDGER_OUTCOMES_URL"] == given


def test_queues_give_failures_back_one_by_one_gather_in_a_window_and_hide_six_times_a_functions_time(
    service: dict[str, Any],
) -> None:
    queues, functions = of_type(service, "AWS::SQS::Queue"), of_type(service, "AWS::Lambda::Function")
    for name in ("ChangesToFunction", "WorkToFunction"):
        mapping = of_type(service, "AWS::Lambda::EventSourceMapping")[name]
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name
        assert mapping["ScalingConfig"]["MaximumConcurrency"], name
        assert (mapping["BatchSize"] > 10, mapping["MaximumBatchingWindowInSeconds"]) == (True, 1), "SQS asks for one"
        hidden_s = queues[_target(mapping["EventSourceArn"])]["VisibilityTimeout"]
        assert hidden_s >= 6 * functions[_target(mapping["FunctionName"])]["Timeout"], name
    assert service["Parameters"]["ChangesPack"]["AllowedValues"] == ["true", "false"]  # which main.py knows


def test_the_stream_hands_over_what_its_region_folds_and_what_values_are_read_from_where_thresholds_are_reported(
    service: dict[str, Any],
) -> None:
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    first, *others = stream["FilterCriteria"]["Filters"]
    assert [(each["Fn::If"][0], each["Fn::If"][2]) for each in others] == [("TellsThresholds", NOTHING)] * 2
    assert _of_parameter(service, "TellsThresholds") == [{"Ref": "TellsThresholds"}, "true"]
    patterns = [each["Pattern"] for each in (first, *(each["Fn::If"][1] for each in others))]
    found = [json.loads(each["Fn::Sub"] if isinstance(each, dict) else each) for each in patterns]
    keys = [[prefix["prefix"] for prefix in each["dynamodb"]["Keys"]["pk"]["S"]] for each in found]
    assert keys == [
        ["delta#${AWS::Region}#", "gate#${AWS::Region}#"],
        ["delta#", "gate#", "crossing#${AWS::Region}#"],
        ["fold#"],
    ]
    assert [each["eventName"] for each in found] == [["INSERT"], ["INSERT", "MODIFY"], ["INSERT", "MODIFY"]]
    assert found[2]["dynamodb"]["Keys"]["sk"] == {"S": ["checkpoint"]}


def test_no_record_of_the_stream_is_given_up_before_the_stream_drops_it(service: dict[str, Any]) -> None:
    """A stray that nobody hears of is in no value until the sweep comes by."""
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    assert (stream["MaximumRecordAgeInSeconds"], stream["MaximumRetryAttempts"]) == (-1, -1)
    assert (stream["BisectBatchOnFunctionError"], stream["ParallelizationFactor"]) == (True, 1)
    assert (stream["FunctionResponseTypes"], stream["StartingPosition"]) == (
        ["ReportBatchItemFailures"],
        "TRIM_HORIZON",
    )
    assert _target(stream["DestinationConfig"]["OnFailure"]["Destination"]) == "FailedQueue"


def test_every_scheduled_function_is_called_in_time_for_its_alarm_and_a_sweep_leaves_its_failure(
    service: dict[str, Any],
) -> None:
    permissions = of_type(service, "AWS::Lambda::Permission").values()
    allowed = {
        (_target(p["FunctionName"]), _target(p["SourceArn"])) for p in permissions if "Fn::GetAtt" in p["SourceArn"]
    }
    ends = {_target(each["FunctionName"]): each for each in of_type(service, "AWS::Lambda::EventInvokeConfig").values()}
    rules = of_type(service, "AWS::Events::Rule")
    rates = {name: rule["ScheduleExpression"] for name, rule in rules.items()}
    assert rates == {"SweepSchedule": "rate(15 minutes)", "CanarySchedule": "rate(5 minutes)"}
    for name, rule in rules.items():
        function = _target(rule["Targets"][0]["Arn"])
        assert (function, name) in allowed
        assert ends[function]["MaximumRetryAttempts"] == 0, "the next run does as much"
    left = ends["SweepLambdaFunction"]["DestinationConfig"]["OnFailure"]["Destination"]
    assert _target(left) == "FailedQueue"


def test_no_route_is_open_and_what_is_not_plainly_a_read_needs_the_scope_that_adds(service: dict[str, Any]) -> None:
    routes = of_type(service, "AWS::ApiGatewayV2::Route")
    for name, route in routes.items():
        if route["RouteKey"].startswith("OPTIONS "):
            assert service["Resources"][name]["Condition"] == "Cors"
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


def test_no_page_of_another_origin_may_call_unless_the_deployment_names_it(service: dict[str, Any]) -> None:
    (api,) = of_type(service, "AWS::ApiGatewayV2::Api").values()
    condition, open_to, closed = api["CorsConfiguration"]["Fn::If"]
    assert (condition, closed, _default("corsOrigins")) == ("Cors", NOTHING, "")
    assert open_to["AllowOrigins"] == {"Ref": "CorsOrigins"}
    assert not open_to.get("AllowCredentials")
    assert open_to["AllowMethods"] == cors.METHODS.split(",")
    assert {name.lower() for name in open_to["AllowHeaders"]} >= {"authorization", "content-type", "idempotency-key"}
    assert open_to["ExposeHeaders"] == cors.ANSWERED


def test_the_api_is_throttled_and_keeps_a_log_of_who_asked(service: dict[str, Any]) -> None:
    (stage,) = of_type(service, "AWS::ApiGatewayV2::Stage").values()
    settings = stage["DefaultRouteSettings"]
    assert settings["ThrottlingRateLimit"] == settings["ThrottlingBurstLimit"] == {"Ref": "ApiRate"}
    assert settings["DetailedMetricsEnabled"] is False  # six metrics a route, which nothing reads
    log = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"caller", "subject", "status"} <= log.keys()
    assert "$context.path" not in log.values()  # it holds the counter's name
