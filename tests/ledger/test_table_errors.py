"""What DynamoDB's failures become: the table edge over a client that answers from a script."""

import io
import socket
from collections.abc import Iterable
from typing import Any, cast

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
)

from ledger import Change, Ledger
from ledger.conditions import Absent
from ledger.dynamo.ask import operation
from ledger.dynamo.client import CONFIG, make_client
from ledger.dynamo.consumed import ASK
from ledger.dynamo.failures import note_attempts
from ledger.dynamo.send import PAUSE_BASE_S, TRIES_MAX
from ledger.errors import (
    LedgerError,
    NotAllowed,
    OutcomeUnknown,
    TableMismatch,
    TableMissing,
    Throttled,
    TransactionConflict,
    Unavailable,
)
from ledger.items import version_is
from ledger.requests import (
    AlreadyThere,
    At,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
)
from ledger.settings import Settings
from ledger.table import DynamoTable

LOST = [
    ReadTimeoutError(endpoint_url="http://x"),
    ConnectionClosedError(endpoint_url="http://x"),
    EndpointConnectionError(endpoint_url="http://x", error="refused"),
    ConnectTimeoutError(endpoint_url="http://x"),
]
REFUSED, NO_ROUTE = LOST[2:]
KEY = Key("p", "a")


class Script:
    """A boto3 client that answers each call with the next line: a dictionary is returned, an exception raised."""

    def __init__(self, lines: Iterable[Any]) -> None:
        self.lines = list(lines)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.calls.append((operation, arguments))
            line = self.lines.pop(0)
            if isinstance(line, Exception):
                raise line
            return line

        return call


class Edge:
    """A DynamoTable over a script; its pauses are written down, and its jitter is a half."""

    def __init__(self, *lines: Any) -> None:
        self.client = Script(lines)
        self.pauses: list[float] = []
        self.table = DynamoTable(
            "counters", "eu-west-1", lambda region: cast(Any, self.client), pause=self.pauses.append, jitter=lambda: 0.5
        )

    def answer(self, request: Request) -> Any:
        answer = self.table.answer(request)
        assert not self.client.lines, "the script was not played to its end"
        return answer

    def error(self, request: Request) -> LedgerError:
        with pytest.raises(LedgerError) as raised:
            self.table.answer(request)
        assert not self.client.lines, "the script was not played to its end"
        return raised.value


def item(sk: str = "a", pk: str = "p") -> Item:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def refusal(code: str, *, retries: int = 0, **more: Any) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "No."}, "ResponseMetadata": {"RetryAttempts": retries}, **more}
    return ClientError(answer, "Operation")


def cancelled(*reasons: str, retries: int = 0) -> ClientError:
    return refusal(
        "TransactionCanceledException", CancellationReasons=[{"Code": reason} for reason in reasons], retries=retries
    )


def conditional(expression: str, name: str, values: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The arguments of a write under a condition on one attribute."""
    valued = {"ExpressionAttributeValues": values} if values else {}
    names = {"ConditionExpression": expression, "ExpressionAttributeNames": {"#0": name}}
    return {"TableName": "counters", **more, **names, **valued, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def statements(*errors: dict[str, Any] | None) -> dict[str, Any]:
    return {"Responses": [{"Error": error} if error else {} for error in errors]}


PUT = Put(item(), Absent())
TRANSACT = Transact((Put(item("a"), version_is(3)), Put(item("b"), Absent())))
WRITES: list[Request] = [PUT, TRANSACT]
READS: list[Request] = [Get(KEY), GetMany((KEY,)), Query("p"), Scan()]


def kind(request: Request) -> str:
    return type(request).__name__


# -- no answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", LOST, ids=lambda e: type(e).__name__)
def test_a_lost_answer_leaves_a_write_unknown_and_a_read_unavailable(lost: BotoCoreError) -> None:
    for read in READS:
        assert type(Edge(lost).error(read)) is Unavailable
    for write in WRITES:
        edge = Edge(lost)
        error = edge.error(write)
        assert type(error) is OutcomeUnknown
        assert error.__cause__ is lost
        assert "may or may not have been applied" in str(error)
        assert edge.pauses == []  # whoever knows the idempotency key decides


class Attempts:
    """A real boto3 client, each of whose attempts ends as the script says: an answer's status, or a failure."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *script: int | BotoCoreError) -> None:
        self.script = list(script)
        monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
        config = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": len(script)}))
        self.client = boto3.client(
            "dynamodb", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x", config=config
        )
        self.client.meta.events.register("before-send.dynamodb", cast(Any, self.send))
        self.table = DynamoTable("counters", "eu-west-1", lambda _: note_attempts(self.client), pause=lambda _: None)

    def send(self, request: Any, **_: Any) -> AWSResponse:
        end = self.script.pop(0)
        if isinstance(end, Exception):
            raise end
        body: Any = io.BytesIO(b'{"__type": "#InternalServerError"}')
        body.stream = lambda **_: iter([body.read()])
        return AWSResponse(request.url, end, cast(Any, {}), body)

    def error(self, request: Request) -> LedgerError:
        with pytest.raises(LedgerError) as raised:
            self.table.answer(request)
        assert self.script == [], "the script was not played to its end"
        return raised.value


@pytest.mark.parametrize("script", [[REFUSED], [NO_ROUTE], [NO_ROUTE, REFUSED], [REFUSED] * 4], ids=str)
@pytest.mark.parametrize("write", WRITES, ids=kind)
def test_a_write_of_which_no_attempt_found_a_connection_wrote_nothing(
    write: Request, script: list[BotoCoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [type(each)(endpoint_url="http://x", error="refused") for each in script]
    error = Attempts(monkeypatch, *own).error(write)
    assert type(error) is Unavailable
    assert "http://x" in str(error)
    assert "Nothing was written" in str(error)


@pytest.mark.parametrize("sent", [*LOST[:2], 500], ids=str)
@pytest.mark.parametrize("write", WRITES, ids=kind)
def test_a_write_that_found_no_connection_after_an_attempt_that_did_has_an_unknown_outcome(
    write: Request, sent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = [EndpointConnectionError(endpoint_url="http://x") for _ in range(2)]
    assert type(Attempts(monkeypatch, refused[0], sent, refused[1]).error(write)) is OutcomeUnknown


@pytest.mark.parametrize("own", [False, True], ids=["made", "given"])
def test_an_add_to_an_endpoint_where_nobody_listens_wrote_nothing(own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    settings = Settings(table="counters", region="eu-west-1", endpoint_url=url)
    client = boto3.client("dynamodb", "eu-west-1", endpoint_url=url, config=CONFIG) if own else None
    with pytest.raises(Unavailable, match=url) as raised:
        Ledger(settings, client=client).add("c", 1)
    assert raised.value.delta is not None
    assert [type(each) for each in Ledger(settings, client=client).add_many([Change("c", 1)] * 2)] == [Unavailable] * 2


@pytest.mark.parametrize("code", ["InternalServerError", "InternalFailure", "ServiceUnavailable", "500", "503", "New"])
def test_a_500_or_a_code_nobody_knows_leaves_the_outcome_of_a_write_unknown(code: str) -> None:
    for write in WRITES:
        assert type(Edge(refusal(code)).error(write)) is OutcomeUnknown
    for read in READS:
        assert type(Edge(refusal(code)).error(read)) is Unavailable


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [*WRITES, *READS], ids=kind)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        *((f"{code}Exception", NotAllowed) for code in ("AccessDenied", "UnrecognizedClient", "ExpiredToken")),
        *(("ResourceNotFoundException", TableMissing), ("ValidationException", TableMismatch)),
    ],
)
def test_a_refusal_is_told_by_its_kind_and_is_not_asked_again(
    request_: Request, code: str, error: type[LedgerError]
) -> None:
    edge = Edge(refusal(code))
    told = edge.error(request_)
    assert type(told) is error
    assert "counters" in str(told)
    assert "Nothing was written" in str(told)
    assert edge.pauses == []


@pytest.mark.parametrize("failure", [NoCredentialsError(), PartialCredentialsError(provider="env", cred_var="x")])
@pytest.mark.parametrize("request_", [PUT, Get(KEY)], ids=kind)
def test_a_process_without_credentials_is_not_allowed(request_: Request, failure: BotoCoreError) -> None:
    assert type(Edge(failure).error(request_)) is NotAllowed


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"])
@pytest.mark.parametrize("write", WRITES, ids=kind)
def test_a_refusal_after_a_lost_answer_is_an_unknown_outcome(write: Request, code: str) -> None:
    assert type(Edge(refusal(code, retries=1)).error(write)) is OutcomeUnknown
    throttled = [refusal("ThrottlingException", retries=1)]
    assert type(Edge(*throttled, refusal(code)).error(write)) is OutcomeUnknown


@pytest.mark.parametrize("retries", [0, 1], ids=["at once", "after a lost answer"])
def test_a_condition_that_fails_answers_the_item_and_is_no_error(retries: int) -> None:
    failed = refusal("ConditionalCheckFailedException", retries=retries, Item=item())
    edge = Edge(failed, failed)
    assert [edge.table.answer(put) for put in (PUT, Put(item(), version_is(7)))] == [item(), item()]
    assert edge.client.calls == [
        ("put_item", conditional("attribute_not_exists(#0)", "pk", Item=item()) | ASK),
        ("put_item", conditional("#0 = :0", "version", {":0": {"N": "7"}}, Item=item()) | ASK),
    ]


# -- throttling and conflicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error"),
    [
        *(("ProvisionedThroughputExceededException", Throttled), ("ThrottlingException", Throttled)),
        *(("RequestLimitExceeded", Throttled), ("TransactionConflictException", TransactionConflict)),
    ],
)
@pytest.mark.parametrize("request_", [*WRITES, *READS], ids=kind)
def test_throttling_and_conflicts_are_tried_again_and_bounded(
    request_: Request, code: str, error: type[LedgerError]
) -> None:
    edge = Edge(*[refusal(code)] * TRIES_MAX)
    assert type(edge.error(request_)) is error
    assert edge.pauses == [PAUSE_BASE_S * 2**n * 0.5 for n in range(TRIES_MAX - 1)]
    assert [call == edge.client.calls[0] for call in edge.client.calls] == [True] * TRIES_MAX


@pytest.mark.parametrize("code", ["ThrottlingException", "TransactionConflictException"])
@pytest.mark.parametrize("write", WRITES, ids=kind)
def test_a_write_that_is_throttled_for_good_after_a_lost_answer_has_an_unknown_outcome(
    write: Request, code: str
) -> None:
    edge = Edge(refusal(code, retries=1), *[refusal(code)] * (TRIES_MAX - 1))
    assert type(edge.error(write)) is OutcomeUnknown
    assert len(edge.pauses) == TRIES_MAX - 1


@pytest.mark.parametrize(
    ("request_", "script"),
    [
        (PUT, [refusal("ThrottlingException"), refusal("TransactionConflictException")]),
        (TRANSACT, [refusal("TransactionInProgressException")]),
        (TRANSACT, [cancelled("TransactionConflict", "None"), cancelled("None", "ThrottlingError")]),
    ],
)
def test_a_write_that_passes_after_some_tries_is_written(request_: Request, script: list[ClientError]) -> None:
    edge = Edge(*script, {})
    assert edge.answer(request_) is None
    assert len(edge.pauses) == len(script) == len(edge.client.calls) - 1


@pytest.mark.parametrize(
    ("request_", "script", "error"),
    [
        (Get(KEY), [refusal("ThrottlingException", retries=3)] * TRIES_MAX, Throttled),
        (TRANSACT, [refusal("TransactionInProgressException")] * TRIES_MAX, OutcomeUnknown),
        (TRANSACT, [cancelled("None", "ValidationError")], TableMismatch),
    ],
    ids=["a read that the SDK retried", "in progress for good", "of a wrong shape"],
)
def test_what_is_told_after_the_last_try(
    request_: Request, script: list[ClientError], error: type[LedgerError]
) -> None:
    assert type(Edge(*script).error(request_)) is error


# -- transactions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reasons",
    [
        ("ConditionalCheckFailed", "None"),
        ("None", "ConditionalCheckFailed"),
        ("ConditionalCheckFailed", "TransactionConflict"),
    ],
)
def test_a_transaction_whose_condition_fails_says_which_at_once(reasons: tuple[str, ...]) -> None:
    edge = Edge(cancelled(*reasons))
    assert edge.answer(TRANSACT) == tuple({} if reason == "ConditionalCheckFailed" else None for reason in reasons)
    assert edge.pauses == []


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("TransactionConflict", TransactionConflict),
        ("ThrottlingError", Throttled),
        ("ProvisionedThroughputExceeded", Throttled),
    ],
)
def test_a_cancelled_transaction_is_tried_again_with_the_same_token_and_bounded(
    reason: str, error: type[LedgerError]
) -> None:
    edge = Edge(*[cancelled("None", reason)] * TRIES_MAX)
    assert type(edge.error(TRANSACT)) is error
    assert edge.pauses == [PAUSE_BASE_S * 2**n * 0.5 for n in range(TRIES_MAX - 1)]
    tokens = [arguments["ClientRequestToken"] for _, arguments in edge.client.calls]
    assert len(tokens) == TRIES_MAX
    assert len(set(tokens)) == 1


def test_a_transaction_has_a_token_of_its_own_and_a_pause_is_waited_for() -> None:
    edge = Edge({}, {})
    edge.table.answer(TRANSACT)
    assert edge.table.answer(Pause(250)) is None
    assert edge.pauses == [0.25]
    edge.table.answer(TRANSACT)
    assert len({arguments["ClientRequestToken"] for _, arguments in edge.client.calls}) == 2


def test_a_named_transaction_has_the_same_token_again_and_another_one_in_another_table() -> None:
    """DynamoDB knows a token in all tables of an account and Region."""
    named = TRANSACT._replace(token="a")
    tokens = [
        operation(asked, table).arguments["ClientRequestToken"]
        for asked, table in ((named, "a"), (named, "a"), (named, "b"), (TRANSACT._replace(token="b"), "a"))
    ]
    assert tokens[0] == tokens[1]
    assert len({*tokens}) == 3


def test_a_transaction_is_two_conditional_puts() -> None:
    edge = Edge({})
    edge.answer(TRANSACT)
    ((operation, arguments),) = edge.client.calls
    assert operation == "transact_write_items"
    assert arguments["TransactItems"] == [
        {"Put": conditional("#0 = :0", "version", {":0": {"N": "3"}}, Item=item("a"))},
        {"Put": conditional("attribute_not_exists(#0)", "pk", Item=item("b"))},
    ]


# -- what DynamoDB leaves undone -----------------------------------------------------------------------------------


def unprocessed_keys(*sks: str) -> dict[str, Any]:
    return {"counters": {"Keys": [item(sk) for sk in sks], "ConsistentRead": True}}


def test_unprocessed_keys_are_asked_for_again() -> None:
    edge = Edge(
        {"Responses": {"counters": [item("b")]}, "UnprocessedKeys": unprocessed_keys("a", "c")},
        {"Responses": {}, "UnprocessedKeys": unprocessed_keys("a", "c")},
        {"Responses": {"counters": [item("a")]}, "UnprocessedKeys": {}},
    )
    assert edge.answer(GetMany((Key("p", "a"), Key("p", "b"), Key("p", "c")))) == (item("a"), item("b"), None)
    assert [arguments["RequestItems"]["counters"]["Keys"] for _, arguments in edge.client.calls] == [
        [item("a"), item("b"), item("c")],
        [item("a"), item("c")],
        [item("a"), item("c")],
    ]
    assert edge.pauses == [PAUSE_BASE_S * 0.5, PAUSE_BASE_S]


def test_unprocessed_keys_are_asked_for_a_bounded_number_of_times() -> None:
    left = {"Responses": {}, "UnprocessedKeys": unprocessed_keys("a")}
    assert type(Edge(*[left] * TRIES_MAX).error(GetMany((KEY,)))) is Throttled


# -- PutMany, DeleteMany: one failure a statement -------------------------------------------------------------------

MANY = pytest.mark.parametrize("many", [PutMany, DeleteMany])


@MANY
@pytest.mark.parametrize(
    ("code", "error"),
    [
        *(("AccessDenied", NotAllowed), ("ResourceNotFound", TableMissing), ("ValidationError", TableMismatch)),
        *(
            (code, OutcomeUnknown)
            for code in ("InternalServerError", "ItemCollectionSizeLimitExceeded", "SomethingNew")
        ),
    ],
)
def test_the_error_of_one_statement_is_the_answer_of_its_item_alone(
    many: Any, code: str, error: type[LedgerError]
) -> None:
    failed = {"Code": code, "Message": "No."}
    after = [refusal("AccessDeniedException")] if error is NotAllowed else []  # PutItem is tried
    answers = Edge(statements(None, failed, None), *after).answer(many((item("a"), item("b"), item("c"))))
    assert [type(answer) for answer in answers] == [type(None), error, type(None)]


@MANY
@pytest.mark.parametrize("code", ["DuplicateItem", "ConditionalCheckFailed"])
def test_a_statement_whose_item_is_there_answers_with_the_item_when_the_store_shows_it(many: Any, code: str) -> None:
    edge = Edge(statements({"Code": code, "Item": item("a")}, {"Code": code}))
    assert edge.answer(many((item("a"), item("b")))) == (AlreadyThere(item("a")), AlreadyThere(None))


@MANY
@pytest.mark.parametrize(
    "code", ["ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded", "TransactionConflict"]
)
def test_only_the_statements_that_failed_in_passing_are_sent_again(many: Any, code: str) -> None:
    edge = Edge(
        statements(None, {"Code": code}, {"Code": "DuplicateItem"}, {"Code": code}),
        statements({"Code": code}, None),
        statements(None),
    )
    puts = tuple(item(sk) for sk in "abcd")
    assert edge.answer(many(puts)) == (None, None, AlreadyThere(None), None)
    sent = [[s["Parameters"][1]["S"] for s in arguments["Statements"]] for _, arguments in edge.client.calls]
    assert sent == [["a", "b", "c", "d"], ["b", "d"], ["b"]]
    assert edge.pauses == [PAUSE_BASE_S * 0.5, PAUSE_BASE_S]


@MANY
def test_a_batch_whose_answer_is_lost_leaves_the_outcome_of_each_item_unknown(many: Any) -> None:
    first, second = Edge(LOST[0]).answer(many((item("a"), item("b"))))
    assert [type(first), type(second)] == [OutcomeUnknown, OutcomeUnknown]
    assert first is not second  # each carries a delta of its own


@MANY
def test_a_statement_without_a_response_has_an_unknown_outcome(many: Any) -> None:
    first, second = Edge(statements(None)).answer(many((item("a"), item("b"))))
    assert first is None
    assert type(second) is OutcomeUnknown


@MANY
def test_a_batch_that_is_throttled_as_a_whole_is_sent_again_and_bounded(many: Any) -> None:
    both = many((item("a"), item("b")))
    assert Edge(refusal("ThrottlingException"), statements(None, None)).answer(both) == (None, None)
    answers = Edge(*[refusal("ThrottlingException")] * TRIES_MAX).answer(both)
    assert [type(answer) for answer in answers] == [Throttled, Throttled]


@MANY
def test_statements_are_sent_a_bounded_number_of_times_and_one_refused_after_a_lost_answer_is_unknown(
    many: Any,
) -> None:
    (answer,) = Edge(*[statements({"Code": "ThrottlingError"})] * TRIES_MAX).answer(many((item(),)))
    assert type(answer) is Throttled
    lost = statements({"Code": "ValidationError", "Message": "No."}) | {"ResponseMetadata": {"RetryAttempts": 1}}
    (answer,) = Edge(lost).answer(many((item(),)))
    assert type(answer) is OutcomeUnknown


def test_a_role_without_partiql_puts_one_by_one() -> None:
    there = refusal("ConditionalCheckFailedException", Item=item())
    edge = Edge(refusal("AccessDeniedException"), there)
    assert edge.answer(PutMany((item(),))) == (AlreadyThere(item()),)
    assert [operation for operation, _ in edge.client.calls] == ["batch_execute_statement", "put_item"]
    assert edge.client.calls[1][1]["ConditionExpression"] == "attribute_not_exists(#0)"


def test_a_role_without_partiql_deletes_one_by_one_and_a_key_without_an_item_is_gone() -> None:
    there = refusal("ConditionalCheckFailedException", Item=item("b"))
    denied = statements(*[{"Code": "AccessDenied", "Message": "No."}] * 3)
    script: dict[str, Any] = {"a": {}, "b": there, "c": refusal("ConditionalCheckFailedException")}

    class ByKey(Script):
        def delete_item(self, **arguments: Any) -> Any:
            self.calls.append(("delete_item", arguments))
            line = script[arguments["Key"]["sk"]["S"]]
            if isinstance(line, Exception):
                raise line
            return line

    client = ByKey([denied])
    table = DynamoTable("counters", "eu-west-1", lambda region: cast(Any, client))
    change = {"change": {"N": "7"}}
    answer = table.answer(DeleteMany(tuple({**item(sk), **change} for sk in "abc")))
    assert answer == (None, AlreadyThere(item("b")), None)
    sent = {arguments["Key"]["sk"]["S"]: arguments for operation, arguments in client.calls[1:]}
    assert sent["a"] == conditional("#0 = :0", "change", {":0": {"N": "7"}}, Key=item("a")) | ASK


@pytest.mark.parametrize(
    ("many", "statement", "more"),
    [
        (DeleteMany, 'DELETE FROM "counters" WHERE "pk" = ? AND "sk" = ? AND "change" = ?', {"change": {"N": "7"}}),
        (PutMany, "INSERT INTO \"counters\" VALUE {'pk': ?, 'sk': ?}", {}),
    ],
)
def test_a_statement_names_every_attribute_and_asks_for_the_item_that_is_there(
    many: Any, statement: str, more: Item
) -> None:
    edge = Edge(statements(None))
    edge.answer(many(({**item(), **more},)))
    sent = {"Statement": statement, "Parameters": [{"S": "p"}, {"S": "a"}, *more.values()]}
    expected = {"Statements": [sent | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}]}
    assert edge.client.calls == [("batch_execute_statement", expected | ASK)]


# -- Together, Scan, clients ---------------------------------------------------------------------------------------


def test_an_error_among_requests_together_is_a_value() -> None:
    class ByKey(Script):
        def query(self, **arguments: Any) -> Any:
            if arguments["ExpressionAttributeValues"][":pk"]["S"] == "bad":
                raise refusal("AccessDeniedException")
            return {"Items": [item()]}

    table = DynamoTable("counters", "eu-west-1", lambda region: cast(Any, ByKey([])))
    first, failed, last = table.answer(Together((Query("p"), Query("bad"), Query("q"))))
    assert first == last == Page((item(),), None)
    assert type(failed) is NotAllowed


def test_a_scan_goes_on_after_a_key_and_asks_for_keys_only() -> None:
    edge = Edge({"Items": [item("b")], "LastEvaluatedKey": item("b")})
    page = edge.answer(Scan(Key("p", "a")))
    assert page.last == Key("p", "b")
    asked = {"TableName": "counters", "ProjectionExpression": "pk, sk", "ExclusiveStartKey": item("a")}
    assert edge.client.calls == [("scan", asked | ASK)]


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("read", [Get, GetMany, Query])
def test_a_read_is_as_consistent_as_it_was_asked_to_be(read: Any, consistent: bool) -> None:
    edge = Edge({"Items": [], "Responses": {}})
    edge.answer(read({Get: KEY, GetMany: (KEY,), Query: "p"}[read], consistent=consistent))
    arguments = edge.client.calls[0][1]
    assert arguments.get("RequestItems", {}).get("counters", arguments)["ConsistentRead"] is consistent


def test_given_clients_are_used_and_the_others_are_made() -> None:
    given = Script([{}, {"Item": item()}])
    settings = Settings(table="counters", region="eu-west-1", regions=("eu-west-1", "us-east-1"))
    clients = {"us-east-1": cast(Any, given)}
    assert DynamoTable.of(settings, clients, "us-east-1").answer(Get(KEY)) is None
    assert DynamoTable.of(settings, clients).answer(At("us-east-1", Get(KEY))) == item()
    both = {"us-east-1": Script([{}]), "eu-west-1": Script([{"Item": item()}])}
    table = DynamoTable("counters", "eu-west-1", cast(Any, both.__getitem__))
    assert [table.answer(At("us-east-1", Get(KEY))), table.answer(Get(KEY))] == [None, item()]


# -- the client ----------------------------------------------------------------------------------------------------


def test_a_process_makes_one_client_for_a_region_and_an_endpoint_with_our_time_outs_retries_and_pool() -> None:
    client = make_client("eu-west-1", "http://127.0.0.1:1")
    config: Any = client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 5)
    assert config.retries == {"mode": "standard", "total_max_attempts": 4}
    assert config.max_pool_connections == 50
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client.meta.region_name == "eu-west-1"
    assert make_client("eu-west-1", "http://127.0.0.1:1") is client
    assert make_client("us-east-1", "http://127.0.0.1:1") is not client
    assert make_client("eu-west-1", "http://127.0.0.1:2") is not client
