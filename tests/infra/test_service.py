"""The service's template: what cfn-lint does not know to be wrong."""

import json
import re
from typing import Any

from infra.build import ROOT
from service.add_from_queue.waits import wait_of
from service.api import cors
from tests.infra import template
from tests.infra.template import listed, of_type, statements

FUNCTIONS = {"AddFromQueue", "Api", "Ring", "Compact", "Sweep", "Canary"}
LAST_STOPS = {"ChangesDeadLetterQueue", "WorkDeadLetterQueue", "FailedQueue"}
OUTCOMES = "OutcomesQueue"  # which the user's own code reads
ANY_RESOURCE = {("xray:PutTraceSegments", "xray:PutTelemetryRecords"), ("sqs:*",)}  # the latter denies plain HTTP
FOURTEEN_DAYS_S = 1_209_600
HIDDEN_S = {"ChangesQueue": 900, "WorkQueue": 720}
"""The longest that a message is hidden from one receive to the next."""


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


def test_no_statement_allows_more_than_it_names(service: dict[str, Any]) -> None:
    """No actions by a pattern; every resource only where IAM knows none; items by partition keys, and by some key."""
    keyless = {f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator")}
    for name, statement in statements(service):
        assert not statement.keys() & {"NotAction", "NotResource"}, name
        actions = listed(statement["Action"])
        assert statement["Effect"] != "Allow" or not [action for action in actions if "*" in action], name
        assert "*" not in listed(statement["Resource"]) or tuple(actions) in ANY_RESOURCE, name
        if {action for action in actions if action.startswith("dynamodb:")} - keyless - {"dynamodb:ListStreams"}:
            condition = statement["Condition"]
            assert condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"], name
            assert condition["Null"] == {"dynamodb:LeadingKeys": "false"}, name


def test_every_function_runs_on_arm_and_has_a_role_that_writes_its_own_log(service: dict[str, Any]) -> None:
    functions = of_type(service, "AWS::Lambda::Function")
    assert {name.removesuffix("LambdaFunction") for name in functions} == FUNCTIONS
    assert {_target(function["Role"]) for function in functions.values()} == {f"{name}Role" for name in FUNCTIONS}
    for name, function in functions.items():
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"]), name
    for name, role in of_type(service, "AWS::IAM::Role").items():
        told = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if each.get("Sid") == "Tell"]
        slug = re.sub(r"(?<!^)(?=[A-Z])", "-", name.removesuffix("Role")).lower()
        assert told[0]["Resource"]["Fn::Sub"].endswith(f":/aws/lambda/${{Name}}-${{Stage}}-{slug}:*")


def test_nothing_is_traced_and_no_role_may_trace_unless_it_is_asked_for(service: dict[str, Any]) -> None:
    """X-Ray samples a request a second of each function and 5 % of the rest, and nobody can say less."""
    assert template.framework()["params"]["default"]["tracing"] == "false"
    assert template.framework()["provider"]["tracing"] == {"lambda": "${strToBool(${param:tracing})}"}
    assert service["Conditions"]["Traces"] == {"Fn::Equals": [{"Ref": "Tracing"}, "true"]}
    for _, packaged in template.packaged():
        modes = {json.dumps(each.get("TracingConfig")) for each in of_type(packaged, "AWS::Lambda::Function").values()}
        asked = packaged["Parameters"]["Tracing"]["Default"] == "true"
        assert modes == {'{"Mode": "Active"}' if asked else "null"}
    for name, role in of_type(service, "AWS::IAM::Role").items():
        said = json.dumps(role["Policies"][0]["PolicyDocument"]["Statement"][-1])
        assert said.startswith('{"Fn::If": ["Traces", {"Sid": "Trace"'), name
        assert json.dumps(role).count("xray:") == 2, name


def test_the_compactor_may_go_on_with_messages_that_it_sent_itself(service: dict[str, Any]) -> None:
    """Else Lambda stops its chain at some 16: the retries of an outage of three hours, or a backlog of one lane."""
    functions = of_type(service, "AWS::Lambda::Function").items()
    assert {name: said["RecursiveLoop"] for name, said in functions if "RecursiveLoop" in said} == {
        "CompactLambdaFunction": "Allow"
    }


def test_every_log_is_deleted_one_day(service: dict[str, Any]) -> None:
    for name, group in of_type(service, "AWS::Logs::LogGroup").items():
        assert group["RetentionInDays"], name
    config = template.framework()
    assert config["provider"]["logRetentionInDays"] == "${param:logRetentionDays}"
    assert not [name for name, function in config["functions"].items() if function.get("disableLogs")]
    for region, packaged in template.packaged():
        named = [group["LogGroupName"] for group in of_type(packaged, "AWS::Logs::LogGroup").values()]
        for function in of_type(packaged, "AWS::Lambda::Function").values():
            assert f"/aws/lambda/{function['FunctionName']}" in named, region


def test_a_message_is_among_the_dead_letters_before_its_queue_gives_it_up(service: dict[str, Any]) -> None:
    queues = of_type(service, "AWS::SQS::Queue")
    assert set(queues) == LAST_STOPS | {OUTCOMES} | set(HIDDEN_S)
    for name, queue in queues.items():
        if name in HIDDEN_S:
            letters = _target(queue["RedrivePolicy"]["deadLetterTargetArn"])
            assert letters in LAST_STOPS, name
            hidden_s = max(HIDDEN_S[name], _number(service, queue["VisibilityTimeout"]))
            worst_s = queue["RedrivePolicy"]["maxReceiveCount"] * hidden_s
            assert 1.5 * worst_s < queue["MessageRetentionPeriod"] <= FOURTEEN_DAYS_S, name
            assert FOURTEEN_DAYS_S - worst_s > 7 * 86_400, f"{name}: a week is left to look at a dead letter"
        else:
            assert queue["MessageRetentionPeriod"] == FOURTEEN_DAYS_S, name


def test_a_good_change_is_tried_for_days_before_it_is_a_dead_letter(service: dict[str, Any]) -> None:
    """By the shortest waits that the function draws; and for a day where the function crashes on it."""
    queue = of_type(service, "AWS::SQS::Queue")["ChangesQueue"]
    receives = queue["RedrivePolicy"]["maxReceiveCount"]
    records = ({"attributes": {"ApproximateReceiveCount": str(number)}} for number in range(1, receives))
    hidden = [wait_of(record, 0.999) for record in records]
    assert sum(hidden) > 4 * 86_400
    assert (receives - 1) * _number(service, queue["VisibilityTimeout"]) > 86_400


def test_other_accounts_may_send_changes_and_nothing_else_and_only_those_that_are_named(
    service: dict[str, Any],
) -> None:
    assert template.framework()["params"]["default"]["producerAccounts"] == ""
    producers = {"Fn::Join": ["", {"Ref": "ProducerAccounts"}]}
    assert service["Conditions"]["HasProducers"] == {"Fn::Not": [{"Fn::Equals": [producers, ""]}]}
    policy = of_type(service, "AWS::SQS::QueuePolicy")["ChangesQueuePolicy"]
    _, given = policy["PolicyDocument"]["Statement"]
    condition, allowed, otherwise = given["Fn::If"]
    assert (condition, otherwise) == ("HasProducers", {"Ref": "AWS::NoValue"})
    assert (allowed["Effect"], allowed["Action"]) == ("Allow", ["sqs:SendMessage"])
    assert allowed["Principal"] == {"AWS": {"Ref": "ProducerAccounts"}}
    assert policy["Queues"] == [{"Ref": "ChangesQueue"}]
    assert allowed["Resource"] == {"Fn::GetAtt": ["ChangesQueue", "Arn"]}
    others = [each for name, each in statements(service) if name == "QueuesOverTls"]
    assert [each["Effect"] for each in others] == ["Deny"]


def test_a_queue_of_outcomes_is_there_when_it_is_asked_for_and_add_from_queue_alone_sends_to_it(
    service: dict[str, Any],
) -> None:
    assert template.framework()["params"]["default"]["outcomes"] == "false"
    assert service["Parameters"]["Outcomes"]["AllowedValues"] == ["true", "false"]
    assert service["Conditions"]["HasOutcomes"] == {"Fn::Equals": [{"Ref": "Outcomes"}, "true"]}
    assert service["Resources"][OUTCOMES]["Condition"] == "HasOutcomes"
    assert service["Outputs"]["OutcomesQueueUrl"] == {"Condition": "HasOutcomes", "Value": {"Ref": OUTCOMES}}
    said = {"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": {"Fn::GetAtt": [OUTCOMES, "Arn"]}}
    senders = [(name, each) for name, each in statements(service) if each["Resource"] == said["Resource"]]
    assert senders == [("AddFromQueueRole", {"Sid": "TellOutcomes", **said})]
    told = {"Fn::If": ["HasOutcomes", {"Ref": OUTCOMES}, ""]}
    assert template.framework()["functions"]["addFromQueue"]["environment"]["LEDGER_OUTCOMES_URL"] == told
    for region, packaged in template.packaged():
        function = of_type(packaged, "AWS::Lambda::Function")["AddFromQueueLambdaFunction"]
        assert function["Environment"]["Variables"]["LEDGER_OUTCOMES_URL"] == told, region


def test_every_queue_is_encrypted_and_reached_by_tls_alone(service: dict[str, Any]) -> None:
    queues = of_type(service, "AWS::SQS::Queue")
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    policies = of_type(service, "AWS::SQS::QueuePolicy").values()
    named = [each["Fn::If"][1] if "Fn::If" in each else each for policy in policies for each in policy["Queues"]]
    assert sorted(map(_target, named)) == sorted(queues), "a queue has one policy: the last one written wins"
    for policy in policies:
        plain = policy["PolicyDocument"]["Statement"][0]
        assert (plain["Effect"], plain["Principal"], plain["Action"]) == ("Deny", "*", "sqs:*")
        assert plain["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_queues_give_failures_back_one_by_one_and_bound_their_concurrency(service: dict[str, Any]) -> None:
    mappings = of_type(service, "AWS::Lambda::EventSourceMapping")
    for name in ("ChangesToFunction", "WorkToFunction"):
        assert mappings[name]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert _number(service, mappings[name]["ScalingConfig"]["MaximumConcurrency"]) >= 2
    for name in ("ChangesToFunction", "WorkToFunction"):
        assert _number(service, mappings[name]["BatchSize"]) > 10, name
        assert _number(service, mappings[name]["MaximumBatchingWindowInSeconds"]) >= 1, f"{name}: SQS asks for one"
    window_s = _number(service, mappings["ChangesToFunction"]["MaximumBatchingWindowInSeconds"])
    assert 1 <= window_s <= int(template.framework()["params"]["default"]["allowedLatenessMs"]) / 5_000
    assert service["Parameters"]["ChangesPack"]["AllowedValues"] == ["true", "false"]  # which main.py knows
    queues, functions = of_type(service, "AWS::SQS::Queue"), of_type(service, "AWS::Lambda::Function")
    for mapping in mappings.values():
        if "Ref" not in mapping["EventSourceArn"]:
            hidden = queues[_target(mapping["EventSourceArn"])]["VisibilityTimeout"]
            assert _number(service, hidden) >= 6 * functions[_target(mapping["FunctionName"])]["Timeout"]


def test_the_stream_hands_over_new_deltas_and_gates_of_its_own_region_alone(service: dict[str, Any]) -> None:
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    pattern = json.loads(stream["FilterCriteria"]["Filters"][0]["Pattern"]["Fn::Sub"])
    assert pattern["eventName"] == ["INSERT"]
    assert pattern["dynamodb"]["Keys"]["pk"]["S"] == [
        {"prefix": "delta#${AWS::Region}#"},
        {"prefix": "gate#${AWS::Region}#"},
    ]
    assert _target(stream["DestinationConfig"]["OnFailure"]["Destination"]) == "FailedQueue"
    assert stream["StartingPosition"] == "TRIM_HORIZON"


def test_where_thresholds_are_told_the_stream_hands_over_what_values_are_read_from_and_nowhere_else(
    service: dict[str, Any],
) -> None:
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    asked = [each["Fn::If"] for each in stream["FilterCriteria"]["Filters"][1:]]
    assert [(condition, no) for condition, _, no in asked] == [("TellsThresholds", {"Ref": "AWS::NoValue"})] * 2
    texts = [yes["Pattern"]["Fn::Sub"] if isinstance(yes["Pattern"], dict) else yes["Pattern"] for _, yes, _ in asked]
    items, checkpoints = map(json.loads, texts)
    assert items["eventName"] == checkpoints["eventName"] == ["INSERT", "MODIFY"]
    prefixes = [each["prefix"] for each in items["dynamodb"]["Keys"]["pk"]["S"]]
    assert prefixes == ["delta#", "gate#", "crossing#${AWS::Region}#"]
    assert checkpoints["dynamodb"]["Keys"] == {"pk": {"S": [{"prefix": "fold#"}]}, "sk": {"S": ["checkpoint"]}}
    assert service["Conditions"]["TellsThresholds"] == {"Fn::Equals": [{"Ref": "TellsThresholds"}, "true"]}


def test_the_compactor_alone_puts_events_and_on_one_bus(service: dict[str, Any]) -> None:
    bus = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/${ThresholdBus}"
    said = {"Sid": "TellCrossings", "Effect": "Allow", "Action": ["events:PutEvents"], "Resource": {"Fn::Sub": bus}}
    puts = [(name, each) for name, each in statements(service) if any("events:" in a for a in listed(each["Action"]))]
    assert puts == [("CompactRole", said)]


def test_no_record_of_the_stream_is_given_up_before_the_stream_drops_it(service: dict[str, Any]) -> None:
    """A stray that nobody hears of is in no value until the sweep comes by."""
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    assert (stream["MaximumRecordAgeInSeconds"], stream["MaximumRetryAttempts"]) == (-1, -1)
    assert stream["BisectBatchOnFunctionError"] is True
    assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert stream["ParallelizationFactor"] == 1


HANDLERS = {
    "addFromQueue": (
        "add_from_queue",
        {"PACK", "ALLOWED_PREFIXES", "CHANGES_QUEUE_URL", "CHANGES_DLQ_URL", "OUTCOMES_URL"},
    ),
    "api": ("api", {"ALLOWED_PREFIXES"}),
    "ring": ("ring", {"WORK_QUEUE_URL", "RING_EVERY_S", "THRESHOLDS"}),
    "compact": ("compact", {"WORK_QUEUE_URL", "WORK_DLQ_URL", "THRESHOLDS", "THRESHOLD_BUS"}),
    "sweep": ("sweep", {"WORK_QUEUE_URL", "VERIFY_ONE_IN", "SWEEP_HOURS", "THRESHOLDS"}),
    "canary": ("canary", set()),
}


def test_every_function_is_told_what_it_asks_its_environment_for() -> None:
    functions = template.framework()["functions"]
    assert set(functions) == set(HANDLERS)
    for name, (folder, asked) in HANDLERS.items():
        assert functions[name]["handler"] == f"service.{folder}.main.handler"
        told = functions[name].get("environment", {})
        assert {variable.removeprefix("LEDGER_") for variable in told} == asked, name
        assert functions[name]["name"].endswith(f"-{folder.replace('_', '-')}"), name
    assert functions["compact"]["environment"]["LEDGER_WORK_DLQ_URL"] == {"Ref": "WorkDeadLetterQueue"}


def test_concurrency_is_kept_where_it_is_asked_for_and_canaries_come_one_at_a_time(service: dict[str, Any]) -> None:
    params = template.framework()["params"]["default"]
    kept = {name: params[f"reserved{name}"] for name in ("AddFromQueue", "Api", "Ring", "Compact", "Canary")}
    assert kept == {"AddFromQueue": "", "Api": "", "Ring": "", "Compact": "", "Canary": 1}
    functions = of_type(service, "AWS::Lambda::Function")
    for name in kept:
        said = {"Fn::If": [f"Keeps{name}", {"Ref": f"Reserved{name}"}, {"Ref": "AWS::NoValue"}]}
        assert functions[f"{name}LambdaFunction"]["ReservedConcurrentExecutions"] == said
        none = [{"Fn::Equals": [{"Ref": f"Reserved{name}"}, no]} for no in ("", "0")]
        assert service["Conditions"][f"Keeps{name}"] == {"Fn::Not": [{"Fn::Or": none}]}


def test_every_scheduled_function_may_be_called_and_a_sweep_leaves_its_failure(service: dict[str, Any]) -> None:
    allowed = {
        (_target(each["FunctionName"]), _target(each["SourceArn"]))
        for each in of_type(service, "AWS::Lambda::Permission").values()
        if "Fn::GetAtt" in each["SourceArn"]
    }
    ends = {_target(each["FunctionName"]): each for each in of_type(service, "AWS::Lambda::EventInvokeConfig").values()}
    rules = of_type(service, "AWS::Events::Rule")
    assert set(rules) == {"SweepSchedule", "CanarySchedule"}
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
            continue  # a preflight carries no credentials, and reads and writes nothing
        assert route["AuthorizationType"] == {"Fn::If": ["Jwt", "JWT", "AWS_IAM"]}, name
        assert route["AuthorizerId"]["Fn::If"][:2] == ["Jwt", {"Ref": "JwtAuthorizer"}], name
        kind = "JwtRead" if route["RouteKey"].startswith(("GET ", "HEAD ")) else "JwtWrite"
        assert route["AuthorizationScopes"]["Fn::If"][:2] == [kind, [{"Ref": f"{kind}Scope"}]], name
    assert "$default" in {route["RouteKey"] for route in routes.values()}


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
    routes = of_type(service, "AWS::ApiGatewayV2::Route").items()
    (preflight,) = [name for name, route in routes if route["RouteKey"] == "OPTIONS /{path+}"]
    assert service["Resources"][preflight]["Condition"] == "Cors"


def test_the_api_is_throttled_and_keeps_a_log_of_who_asked(service: dict[str, Any]) -> None:
    (stage,) = of_type(service, "AWS::ApiGatewayV2::Stage").values()
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == {"Ref": "ApiRate"}
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] == {"Ref": "ApiBurst"}
    assert stage["DefaultRouteSettings"]["DetailedMetricsEnabled"] is False  # six metrics a route, which nothing reads
    log = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"caller", "subject", "status"} <= log.keys()
    assert "$context.path" not in log.values()  # it holds the counter's name
