"""The service's template: what cfn-lint does not know to be wrong, and `make e2e` does not meet."""

import json
import re
from typing import Any

from service.add_from_queue.record import wait_of
from tests.infra.template import ROOT, framework, of_type, target

FOURTEEN_DAYS_S = 1_209_600
HIDDEN_S = {"ChangesQueue": 900, "WorkQueue": 720}
"""The longest that a message is hidden from one receive to the next."""

PRODUCE: dict[str, Any] = {"Sid": "Produce", "Effect": "Allow", "Action": ["sqs:SendMessage"]}
PRODUCE |= {
    "Principal": {"AWS": {"Ref": "ProducerAccounts"}},
    "Resource": {"Fn::GetAtt": ["ChangesQueue", "Arn"]},
}


def test_a_function_has_a_role_a_name_a_handler_and_a_schedule(
    service: dict[str, Any],
) -> None:
    functions = of_type(service, "AWS::Lambda::Function")
    for key, declared in framework()["functions"].items():
        name, folder = key[0].upper() + key[1:], re.sub(r"([A-Z])", r"_\1", key).lower()
        assert target(functions.pop(f"{name}LambdaFunction")["Role"]) == f"{name}Role"
        assert declared["handler"] == f"service.{folder}.main.handler"
        assert (ROOT / "service" / folder / "main.py").exists()
        # as its log in infra/roles.yml
        assert declared["name"].endswith("-" + folder.replace("_", "-"))
    assert functions == {}
    permissions = [
        each
        for each in of_type(service, "AWS::Lambda::Permission").values()
        if "Fn::GetAtt" in each["SourceArn"]
    ]
    called = {(target(each["FunctionName"]), target(each["SourceArn"])) for each in permissions}
    rules = of_type(service, "AWS::Events::Rule").items()
    assert called >= {(target(rule["Targets"][0]["Arn"]), name) for name, rule in rules}


def test_the_stream_hands_over_each_change_until_it_is_taken(
    service: dict[str, Any],
) -> None:
    """A record may be a stray's.

    And a chain of messages is the retries of an outage, or a backlog of one lane.
    """
    stream = of_type(service, "AWS::Lambda::EventSourceMapping")["StreamToFunction"]
    assert (stream["MaximumRecordAgeInSeconds"], stream["MaximumRetryAttempts"]) == (-1, -1)
    kinds = re.findall(r"(\w+)#", json.dumps(stream["FilterCriteria"]))
    # here; for thresholds of any Region
    assert kinds == ["delta", "gate", *("delta", "gate", "crossing"), "fold"]
    functions = of_type(service, "AWS::Lambda::Function")
    assert [name for name, each in functions.items() if "RecursiveLoop" in each] == [
        "CompactLambdaFunction"
    ]


def test_a_message_is_dead_before_its_queue_gives_it_up(
    service: dict[str, Any],
) -> None:
    queues, letters = of_type(service, "AWS::SQS::Queue"), set[str]()
    for each in of_type(service, "AWS::Lambda::EventSourceMapping").values():
        # a queue, which hides a batch longer than its function may run
        if "Fn::GetAtt" in each["EventSourceArn"]:
            function = of_type(service, "AWS::Lambda::Function")[target(each["FunctionName"])]
            assert (
                queues[target(each["EventSourceArn"])]["VisibilityTimeout"]
                >= 6 * function["Timeout"]
            )
    for name, hidden_s in HIDDEN_S.items():
        policy, kept_s = queues[name]["RedrivePolicy"], queues[name]["MessageRetentionPeriod"]
        worst_s = policy["maxReceiveCount"] * max(hidden_s, queues[name]["VisibilityTimeout"])
        assert 1.5 * worst_s < kept_s <= FOURTEEN_DAYS_S, name
        assert FOURTEEN_DAYS_S - worst_s > 7 * 86_400, (
            f"{name}: a week is left to look at a dead letter"
        )
        letters.add(target(policy["deadLetterTargetArn"]))
    assert letters == {"ChangesDeadLetterQueue", "WorkDeadLetterQueue"}
    last = letters | {"FailedQueue", "OutcomesQueue"}
    assert {queues[name]["MessageRetentionPeriod"] for name in last} == {FOURTEEN_DAYS_S}
    assert set(queues) == last | set(HIDDEN_S)
    receives = queues["ChangesQueue"]["RedrivePolicy"]["maxReceiveCount"]
    records = (
        {"attributes": {"ApproximateReceiveCount": str(number)}} for number in range(1, receives)
    )
    # by the shortest waits that are drawn
    assert sum(wait_of(record, 0.999) for record in records) > 4 * 86_400
    # where the function crashes on it
    assert (receives - 1) * queues["ChangesQueue"]["VisibilityTimeout"] > 86_400


def test_a_queue_is_encrypted_and_reached_by_tls_alone(
    service: dict[str, Any],
) -> None:
    queues, policies = (
        of_type(service, "AWS::SQS::Queue"),
        of_type(service, "AWS::SQS::QueuePolicy"),
    )
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    named = [
        each["Fn::If"][1] if "Fn::If" in each else each
        for p in policies.values()
        for each in p["Queues"]
    ]
    assert sorted(map(target, named)) == sorted(queues), (
        "a queue has one policy: the last one written wins"
    )
    more = {}
    for name, policy in policies.items():
        plain, *more[name] = policy["PolicyDocument"]["Statement"]
        assert (plain["Effect"], plain["Principal"], plain["Action"]) == ("Deny", "*", "sqs:*")
        assert plain["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    produce = {"Fn::If": ["HasProducers", PRODUCE, {"Ref": "AWS::NoValue"}]}
    assert more == {"ChangesQueuePolicy": [produce], "QueuesOverTls": []}


def test_no_route_is_open_and_a_write_needs_the_scope_that_adds(
    service: dict[str, Any],
) -> None:
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
    # else it falls to $default, which asks a reader for the scope that adds
    for path, methods in described.items():
        for method in methods:
            asked = [method.upper(), "HEAD"] if method == "get" else [method.upper()]
            assert {f"{each} {re.sub('{counter}.*', '{path+}', path)}" for each in asked} <= keys, (
                path
            )


def test_the_api_answers_named_origins_and_logs_no_name(
    service: dict[str, Any],
) -> None:
    (api,) = of_type(service, "AWS::ApiGatewayV2::Api").values()
    condition, open_to, _ = api["CorsConfiguration"]["Fn::If"]
    assert (condition, open_to["AllowOrigins"]) == ("Cors", {"Ref": "CorsOrigins"})
    assert open_to["AllowMethods"] == ["GET", "HEAD", "POST"]
    assert {name.lower() for name in open_to["AllowHeaders"]} >= {
        "authorization",
        "content-type",
        "idempotency-key",
    }
    assert open_to["ExposeHeaders"] == ["Idempotency-Hit", "Retry-After", "Allow"]
    (stage,) = of_type(service, "AWS::ApiGatewayV2::Stage").values()
    log = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"caller", "subject", "status"} <= log.keys()
    assert "$context.path" not in log.values()
