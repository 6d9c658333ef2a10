"""What DynamoDB's failures become: the table edge over a client that answers from a script."""

import io
import socket
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials
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
from botocore.session import Session, get_session
from botocore.stub import Stubber

from ledger import Change, Cost, Ledger
from ledger.core.conditions import Absent
from ledger.core.cost import Meter
from ledger.core.errors import (
    Again,
    InvalidSettings,
    LedgerError,
    NotAllowed,
    OutcomeUnknown,
    TableMismatch,
    TableMissing,
    Throttled,
    TransactionConflict,
    Unavailable,
)
from ledger.core.items import version_is
from ledger.core.requests import (
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
from ledger.tables.answers import Answer
from ledger.tables.ask import operation
from ledger.tables.boto import CONFIG, make_client
from ledger.tables.consumed import ASK
from ledger.tables.dynamo import DynamoTable
from ledger.tables.fast import FastClient
from ledger.tables.send import PAUSE_BASE_S, TRIES_MAX
from tests.ledger.scripted import SESSION
from tests.world import settings

URL = {"endpoint_url": "http://x"}
KEY = Key("p", "a")
UNTOLD = Cost(1, 1, untold=1)
BACKED_OFF = [PAUSE_BASE_S * 2**n * 0.5 for n in range(TRIES_MAX - 1)]


class Script:
    """A boto3 client that answers each call with the next line: a dictionary is returned, an
    exception raised.

    by: where an operation's calls come at once, so in any order, the line by the text of what is
    asked for.
    """

    def __init__(self, lines: Iterable[Any], **by: Any) -> None:
        self.lines = list(lines)
        self.by = by
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.calls.append((operation, arguments))
            known = [line for text, line in self.by.items() if f"'{text}'" in str(arguments)]
            line = (
                known[0] if operation in ("query", "delete_item") and known else self.lines.pop(0)
            )
            if isinstance(line, BaseException):
                raise line
            return line

        return call


class Edge:
    """A DynamoTable over a script; its pauses are written down, and its jitter is a half."""

    def __init__(self, *lines: Any, **by: Any) -> None:
        self.client = Script(lines, **by)
        self.pauses: list[float] = []
        self.table = DynamoTable(
            "counters",
            "eu-west-1",
            lambda region: cast(Any, self.client),
            pause=self.pauses.append,
            jitter=lambda: 0.5,
        )

    def answer(self, request: Request) -> Any:
        answer = self.table.answer(request)
        assert not self.client.lines, "the script was not played to its end"
        return answer

    def error(self, request: Request) -> LedgerError:
        with pytest.raises(LedgerError) as raised:
            self.answer(request)
        assert not self.client.lines, "the script was not played to its end"
        return raised.value


def item(sk: str = "a", pk: str = "p") -> Item:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def refusal(code: str, *, retries: int = 0, **more: Any) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": "No."},
        "ResponseMetadata": {"RetryAttempts": retries},
        **more,
    }
    return ClientError(answer, "Operation")


def cancelled(*reasons: str) -> ClientError:
    return refusal(
        "TransactionCanceledException", CancellationReasons=[{"Code": reason} for reason in reasons]
    )


def statements(*errors: dict[str, Any] | None) -> dict[str, Any]:
    return {"Responses": [{"Error": error} if error else {} for error in errors]}


PUT = Put(item(), Absent())
TRANSACT = Transact((Put(item("a"), version_is(3)), Put(item("b"), Absent())))
WRITES: list[Request] = [PUT, TRANSACT]
READS: list[Request] = [Get(KEY), GetMany((KEY,)), Query("p"), Scan()]

Failures = Sequence[BaseException]
Kind = type[LedgerError]
LOST = [ReadTimeoutError(**URL), ConnectionClosedError(**URL), EndpointConnectionError(**URL)]
REFUSED: dict[str, Kind] = {  # certainly written by no attempt
    "AccessDeniedException": NotAllowed,
    "ExpiredTokenException": Unavailable,
    "RequestExpired": Unavailable,
    "UnrecognizedClientException": NotAllowed,
    "ResourceNotFoundException": TableMissing,
    "ValidationException": TableMismatch,
}
PASSES: dict[str, Kind] = {  # what is sent again
    "ProvisionedThroughputExceededException": Throttled,
    "ThrottlingException": Throttled,
    "RequestLimitExceeded": Throttled,
    "TransactionConflictException": TransactionConflict,
    "ReplicatedWriteConflictException": TransactionConflict,
}
# the failures of a request; error of a write, of a read
FAILURES: list[tuple[Failures, Kind, Kind]] = [
    *(([lost], OutcomeUnknown, Unavailable) for lost in [*LOST, ConnectTimeoutError(**URL)]),
    *(
        ([refusal(code)], OutcomeUnknown, Unavailable)
        for code in ("InternalServerError", "ServiceUnavailable", "New")
    ),
    ([NoCredentialsError()], NotAllowed, NotAllowed),
    ([PartialCredentialsError(provider="env", cred_var="x")], NotAllowed, NotAllowed),
    *(([refusal(code)], error, error) for code, error in REFUSED.items()),
    *(([refusal(code)] * TRIES_MAX, error, error) for code, error in PASSES.items()),
    # an attempt before them had no answer
    *(([refusal(code, retries=1)], OutcomeUnknown, error) for code, error in REFUSED.items()),
    *(
        ([refusal("ThrottlingException", retries=1), refusal(code)], OutcomeUnknown, error)
        for code, error in REFUSED.items()
    ),
    *(
        ([refusal(code, retries=1), *[refusal(code)] * (TRIES_MAX - 1)], OutcomeUnknown, error)
        for code, error in PASSES.items()
    ),
]
OF_TRANSACTIONS: list[tuple[Failures, Kind]] = [
    ([cancelled("None", "TransactionConflict")] * TRIES_MAX, TransactionConflict),
    ([cancelled("None", "ThrottlingError")] * TRIES_MAX, Throttled),
    ([refusal("TransactionInProgressException")] * TRIES_MAX, OutcomeUnknown),
    ([cancelled("None", "ValidationError")], TableMismatch),
]


def test_what_failures_mean_to_a_write_and_to_a_read() -> None:
    cases = [
        *((write, failures, error) for failures, error, _ in FAILURES for write in WRITES),
        *((read, failures, error) for failures, _, error in FAILURES for read in READS),
        *((TRANSACT, failures, error) for failures, error in OF_TRANSACTIONS),
    ]
    for request, failures, expected in cases:
        edge = Edge(*failures)
        error = edge.error(request)
        assert type(error) is expected, (failures, request)
        # whoever knows the idempotency key decides on the others
        assert edge.pauses == BACKED_OFF[: len(failures) - 1]
        assert edge.client.calls == [edge.client.calls[0]] * len(failures)  # with the same token
        assert error.__cause__ in failures
        if expected in (NotAllowed, TableMissing, TableMismatch) and isinstance(
            failures[-1], ClientError
        ):
            assert "counters" in str(error)
            assert "Nothing was written" in str(error)


def test_a_missing_table_says_how_to_make_it() -> None:
    error = str(Edge(refusal("ResourceNotFoundException")).error(PUT))
    assert error.endswith("endpoint_url, or make it with `ledgerctl init`.")


def test_a_page_of_a_proxy_is_its_title() -> None:
    for page, says in (
        (
            "<html>\n<head><TITLE> 404 Not Found </TITLE></head><body></body></html>",
            "404 Not Found",
        ),
        ("<html><body>No.</body></html>", "a page, and no answer of DynamoDB"),
    ):
        failure = ClientError({"Error": {"Code": "404", "Message": page}}, "GetItem")
        error = str(Edge(failure).error(Get(KEY)))
        assert (says in error, "<" in error) == (True, False)


def test_a_refused_transaction_may_mean_a_strong_table() -> None:
    for request, may_be in ((TRANSACT, True), (PUT, False)):
        refused = str(Edge(refusal("ValidationException")).error(request))
        assert ("Nothing was written" in refused, "multi-Region strong consistency" in refused) == (
            True,
            may_be,
        )


CONDITION = "ConditionalCheckFailed"
# what passes when it is sent again, and what is no error
ANSWERED: list[tuple[Request, list[Any], Any]] = [
    (PUT, [refusal("ThrottlingException"), refusal("TransactionConflictException"), {}], None),
    (TRANSACT, [refusal("TransactionInProgressException"), {}], None),
    (
        TRANSACT,
        [cancelled("TransactionConflict"), cancelled("None", "ProvisionedThroughputExceeded"), {}],
        None,
    ),
    *((PUT, [refusal(f"{CONDITION}Exception", retries=n, Item=item())], item()) for n in (0, 1)),
    (Put(item(), version_is(7)), [refusal(f"{CONDITION}Exception", Item=item())], item()),
    (TRANSACT, [cancelled(CONDITION, "None")], ({}, None)),
    (TRANSACT, [cancelled("TransactionConflict", CONDITION)], (None, {})),
]


def test_a_write_that_passes_late_is_written() -> None:
    for request, script, answer in ANSWERED:
        edge = Edge(*script)
        assert edge.answer(request) == answer
        assert len(edge.pauses) == len(edge.client.calls) - 1 == len(script) - 1
        arguments = edge.client.calls[0][1]
        for asked in arguments["TransactItems"] if request == TRANSACT else [{"Put": arguments}]:
            assert asked["Put"]["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
    edge = Edge()
    assert edge.answer(Pause(250)) is None
    assert edge.pauses == [0.25]


def test_an_error_of_a_callers_client_is_no_table_error() -> None:
    for failure in (TypeError("no such parameter"), AssertionError("mine")):
        for request in (PUT, PutMany((item(),)), Get(KEY)):
            with pytest.raises(type(failure)):
                Edge(failure).answer(request)


# -- attempts of the SDK


class Attempts:
    """A real boto3 client, or a FastClient, each of whose attempts ends as the script says: a
    status, or a failure.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, fast: bool, *script: int | BotoCoreError
    ) -> None:
        self.script, self.body = list(script), b'{"__type": "#InternalServerError"}'
        self.headers: dict[str, str] = {}
        monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
        config = CONFIG.merge(
            Config(retries={"mode": "standard", "total_max_attempts": len(script)})
        )
        self.client = boto3.client(
            "dynamodb", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x", config=config
        )
        self.client.meta.events.register("before-send.dynamodb", cast(Any, self.send))
        if fast:
            monkeypatch.setattr("ledger.tables.boto.CONFIG", config)
            client: Any = FastClient("eu-west-1", session=SESSION)
            client._credentials = Credentials("x", "x")
            connections: Any = SimpleNamespace(send=self.answer)
            client._destination = client._destination._replace(connections=connections)
            self.client = client
        self.table = DynamoTable.of(settings(), {"eu-west-1": self.client})

    def answer(self, request: bytes) -> Answer:
        sent = self.send(SimpleNamespace(url="http://x"))
        return Answer(sent.status_code, {}, sent.content)

    def send(self, request: Any, **_: Any) -> AWSResponse:
        end = self.script.pop(0)
        if isinstance(end, Exception):
            raise end
        body: Any = io.BytesIO(self.body)
        body.stream = lambda **_: iter([body.read()])
        return AWSResponse(request.url, end, cast(Any, self.headers), body)


NO_ROUTE, TIMED_OUT, CUT_OFF = EndpointConnectionError, ConnectTimeoutError, ReadTimeoutError
ATTEMPTS: list[tuple[list[Any], Kind, Cost]] = [
    ([NO_ROUTE], Unavailable, Cost()),
    ([TIMED_OUT, NO_ROUTE, NO_ROUTE], Unavailable, Cost()),
    *(
        ([NO_ROUTE, sent, NO_ROUTE], OutcomeUnknown, UNTOLD)
        for sent in (CUT_OFF, ConnectionClosedError, 500)
    ),
    ([NO_ROUTE, 500], OutcomeUnknown, Cost(1, 2)),
    ([CUT_OFF, CUT_OFF, NO_ROUTE], OutcomeUnknown, Cost(1, 2, untold=1)),
]


def test_a_write_that_found_no_connection_wrote_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for write, fast in ((write, fast) for write in WRITES for fast in (False, True)):
        for script, expected, cost in ATTEMPTS:
            attempts = Attempts(
                monkeypatch, fast, *(end if end == 500 else end(**URL) for end in script)
            )
            with (
                Meter() as meter,
                pytest.raises(expected, match=r"http://x|InternalServerError") as raised,
            ):
                attempts.table.answer(write)
            assert attempts.script == []
            assert ("Nothing was written" in str(raised.value)) is (expected is Unavailable)
            assert meter.take() == cost


def test_a_host_without_connection_may_be_a_typo(monkeypatch: pytest.MonkeyPatch) -> None:
    for request, fast in ((request, fast) for request in (PUT, Get(KEY)) for fast in (False, True)):
        for failure in (NO_ROUTE, TIMED_OUT):
            table = Attempts(monkeypatch, fast, failure(**URL)).table
            with pytest.raises(Unavailable, match=r"Nothing was written\. Call again") as raised:
                table.answer(request)
            assert ("check the Region's name" in str(raised.value)) is (failure is NO_ROUTE)


FOREIGN: list[tuple[int, bytes]] = [
    *(
        (200, body)
        for body in (
            b'{"Item": {"pk": {"S": "p"}, "sk"',
            b"",
            b"<html>",
            b"{}",
            b'{"message": "ok"}',
        )
    ),
    *((200, body) for body in (b"null", b"[]", b'"x"', b"5", b"\x1f\x8b\x08\x00\xff")),
    *((400, body) for body in (b"null", b"[]", b"\xff\xfe", b'{"__type": 5}', b"[" * 9_999)),
]


def test_what_is_no_answer_of_dynamodb_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore takes what is no JSON for an answer without anything, and a read would find
    nothing.
    """
    requests: list[tuple[Request, Kind]] = [(PUT, OutcomeUnknown), (TRANSACT, OutcomeUnknown)]
    requests += [(read, Unavailable) for read in (Get(KEY), GetMany((KEY,)), Query("p"), Scan())]
    for fast in (False, True):
        for status, body in FOREIGN:
            for request, error in requests:
                attempts = Attempts(monkeypatch, fast, status)
                attempts.body = body
                with pytest.raises(error):
                    attempts.table.answer(request)
            attempts = Attempts(monkeypatch, fast, status)
            attempts.body = body
            (answer,) = attempts.table.answer(PutMany((item(),)))
            assert type(answer) is OutcomeUnknown
        attempts = Attempts(monkeypatch, fast, 200)
        attempts.body = b'{"ConsumedCapacity": {"CapacityUnits": 0.5}}'
        assert attempts.table.answer(Get(KEY)) is None


def test_an_answer_that_differs_from_its_checksum_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for checksum in ("1", "x"):
        for request, error in ((Get(KEY), Unavailable), (PUT, OutcomeUnknown)):
            attempts = Attempts(monkeypatch, False, 200)
            attempts.body, attempts.headers = b'{"ConsumedCapacity": {}}', {"x-amz-crc32": checksum}
            with pytest.raises(error):
                attempts.table.answer(request)


def test_botocores_stub_answers_as_dynamodb_would() -> None:
    client = boto3.client("dynamodb", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        stub.add_response("get_item", {})  # the shape
        stub.add_response("put_item", {})
        stub.add_client_error("put_item", "ProvisionedThroughputExceededException")
        stub.add_client_error("put_item", "ValidationException")
        ledger = Ledger(settings(), client=client)
        assert ledger.add("c", 1).outcome == "recorded"
        with pytest.raises(TableMismatch):
            ledger.add("c", 1)
        stub.assert_no_pending_responses()


def test_answers_that_came_over_no_wire_are_taken_as_they_are() -> None:
    """As placebo and its like give them: a status and the parsed answer, and nothing else."""
    client = boto3.client("dynamodb", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    recorded: Any = (SimpleNamespace(status_code=200), {"Item": item()})
    client.meta.events.register("before-call.dynamodb", lambda **_: recorded)
    assert DynamoTable.of(settings(), {"eu-west-1": client}).answer(Get(KEY)) == item()


TOO_OLD = [
    "Signature expired: 20261128T101500Z is now earlier than ...",
    "Signature not yet current: ...",
]


def test_a_signature_that_is_too_old_is_no_missing_right() -> None:
    for message in TOO_OLD:
        for code in ("InvalidSignatureException", "SignatureDoesNotMatch"):
            failure = refusal(code)
            failure.response["Error"]["Message"] = message
            error = Edge(failure).error(PUT)
            assert (type(error), isinstance(error, Again)) == (Unavailable, True)
            assert message.rstrip(". ") in str(error)
            assert (
                "Nothing was written. Call again, which signs anew. Check this machine's clock"
                in str(error)
            )
    # the key is wrong
    assert type(Edge(refusal("InvalidSignatureException")).error(PUT)) is NotAllowed


REASONS = {
    "TableWriteKeyRangeThroughputExceeded": "one lane",
    "TableReadAccountLimitExceeded": "quota",
    "TableWriteMaxOnDemandThroughputExceeded": "tableWrites or tableReads",
    "TableWriteProvisionedThroughputExceeded": "provisioned capacity",
}


def test_throttling_says_what_is_too_small_where_dynamodb_does() -> None:
    for name, field in (
        ("ThrottlingException", "throttlingReasons"),
        ("RequestLimitExceeded", "ThrottlingReasons"),
    ):
        for reason, words in REASONS.items():
            said: Any = {field: [{"reason": reason}, {"reason": reason}]}
            error = Edge(*[refusal(name, **said)] * TRIES_MAX).error(PUT)
            assert isinstance(error, Throttled)
            assert error.reasons == (reason,)
            assert f"Nothing was written. Call again, slower. {reason}: " in str(error)
            assert words in str(error)
    for odd in ([{"resource": "arn"}], [None], 5):
        error = Edge(*[refusal("ThrottlingException", throttlingReasons=odd)] * TRIES_MAX).error(
            PUT
        )
        assert (type(error), error.reasons) == (Throttled, ())  # type: ignore[attr-defined]


@pytest.mark.parametrize("fast", [False, True])
def test_a_client_sends_again_what_another_region_is_writing(
    monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    attempts = Attempts(monkeypatch, fast, 409, 409, 409)
    attempts.body = (
        b'{"__type": "com.amazonaws.dynamodb.v20120810#ReplicatedWriteConflictException"}'
    )
    with pytest.raises(ClientError, match="ReplicatedWriteConflict"):
        attempts.client.put_item(TableName="counters", Item=item())
    shape = Session().get_service_model("dynamodb").shape_for("ReplicatedWriteConflictException")
    # the oldest botocore does not; then the library does
    sends_again = "retryable" in shape.metadata
    assert attempts.script == ([] if sends_again else [409, 409])


def test_an_add_to_an_endpoint_that_is_not_there_wrote_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    ledger = Ledger(settings(endpoint_url=url))
    with pytest.raises(Unavailable, match=url) as raised:
        ledger.add("c", 1)
    assert raised.value.delta is not None
    assert [type(each) for each in ledger.add_many([Change("c", 1)] * 2)] == [Unavailable] * 2


# -- what is sent


def test_a_transaction_has_a_token_by_its_table_and_its_name() -> None:
    # DynamoDB knows a token in all tables of an account and Region
    named = TRANSACT._replace(token="a")
    asked = (
        *((named, "a"), (named, "a"), (named, "b"), (TRANSACT._replace(token="b"), "a")),
        *((TRANSACT, "a"), (TRANSACT, "a")),
    )
    tokens = [operation(request, table).arguments["ClientRequestToken"] for request, table in asked]
    assert tokens[0] == tokens[1]
    assert len({*tokens}) == 5


def test_unprocessed_keys_are_asked_for_again_at_most_so_often() -> None:
    def left(*sks: str, found: tuple[str, ...] = ()) -> dict[str, Any]:
        keys = (
            {"counters": {"Keys": [item(sk) for sk in sks], "ConsistentRead": True}} if sks else {}
        )
        return {"Responses": {"counters": [item(sk) for sk in found]}, "UnprocessedKeys": keys}

    edge = Edge(left("a", "c", found=("b",)), left("a", "c"), left(found=("a",)))
    assert edge.answer(GetMany((Key("p", "a"), Key("p", "b"), Key("p", "c")))) == (
        item("a"),
        item("b"),
        None,
    )
    asked = [arguments["RequestItems"]["counters"]["Keys"] for _, arguments in edge.client.calls]
    assert [[key["sk"]["S"] for key in keys] for keys in asked] == [
        ["a", "b", "c"],
        ["a", "c"],
        ["a", "c"],
    ]
    assert edge.pauses == BACKED_OFF[:2]
    assert type(Edge(*[left("a")] * TRIES_MAX).error(GetMany((KEY,)))) is Throttled


def test_a_read_is_as_consistent_as_asked_and_a_scan_goes_on() -> None:
    for read, asked in ((Get, KEY), (GetMany, (KEY,)), (Query, "p")):
        for consistent in (True, False):
            edge = Edge({"Items": [], "Responses": {}})
            edge.answer(cast(Any, read)(asked, consistent=consistent))
            arguments = edge.client.calls[0][1]
            assert (
                arguments.get("RequestItems", {}).get("counters", arguments)["ConsistentRead"]
                is consistent
            )
    edge = Edge({"Items": [item("b")], "LastEvaluatedKey": item("b")})
    assert edge.answer(Scan(Key("p", "a"))).last == Key("p", "b")
    scan = {
        "TableName": "counters",
        "ProjectionExpression": "pk, sk",
        "ExclusiveStartKey": item("a"),
    }
    assert edge.client.calls == [("scan", scan | ASK)]


def test_an_error_among_requests_together_is_a_value() -> None:
    found = {"Items": [item()]}
    edge = Edge(p=found, bad=refusal("AccessDeniedException"), q=found)
    first, failed, last = edge.answer(Together((Query("p"), Query("bad"), Query("q"))))
    assert first == last == Page((item(),), None)
    assert type(failed) is NotAllowed


# -- PutMany, DeleteMany: one failure a statement

MANY = pytest.mark.parametrize("many", [PutMany, DeleteMany])
CONFLICTS = ("TransactionConflict", "ReplicatedWriteConflict", "ReplicatedWriteConflictException")
OF_A_STATEMENT: dict[str, Kind] = {
    "AccessDenied": NotAllowed,
    "ResourceNotFound": TableMissing,
    "ValidationError": TableMismatch,
    **dict.fromkeys(
        ("InternalServerError", "ItemCollectionSizeLimitExceeded", "SomethingNew"), OutcomeUnknown
    ),
}


@MANY
def test_an_error_of_one_statement_is_its_items_alone(many: Any) -> None:
    three = many((item("a"), item("b"), item("c")))
    for code, error in OF_A_STATEMENT.items():
        # a single write is tried
        after = [refusal("AccessDeniedException")] if error is NotAllowed else []
        answers = Edge(statements(None, {"Code": code, "Message": "No."}, None), *after).answer(
            three
        )
        assert [type(answer) for answer in answers] == [type(None), error, type(None)]
    for code in ("DuplicateItem", "ConditionalCheckFailed"):
        edge = Edge(statements({"Code": code, "Item": item("a")}, {"Code": code}, None))
        assert edge.answer(three) == (AlreadyThere(item("a")), AlreadyThere(None), None)
    for code in (
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
        "RequestLimitExceeded",
        *CONFLICTS,
    ):
        passing = statements({"Code": code}, {"Code": "DuplicateItem"}, {"Code": code})
        edge = Edge(passing, statements({"Code": code}, None), statements(None))
        assert edge.answer(three) == (None, AlreadyThere(None), None)
        sent = [
            [s["Parameters"][1]["S"] for s in arguments["Statements"]]
            for _, arguments in edge.client.calls
        ]
        assert (sent, edge.pauses) == ([["a", "b", "c"], ["a", "c"], ["a"]], BACKED_OFF[:2])


@MANY
def test_a_batch_that_fails_as_a_whole_is_sent_so_often(
    many: Any,
) -> None:
    both = many((item("a"), item("b")))
    assert Edge(refusal("ThrottlingException"), statements(None, None)).answer(both) == (None, None)
    throttled = [statements(*[{"Code": "ThrottlingError"}] * 2)] * TRIES_MAX
    refused = statements(*[{"Code": "ValidationError", "Message": "No."}] * 2)
    outcomes: list[tuple[list[Any], Kind]] = [
        ([LOST[0]], OutcomeUnknown),
        ([refusal("ThrottlingException")] * TRIES_MAX, Throttled),
        (throttled, Throttled),
        ([refused | {"ResponseMetadata": {"RetryAttempts": 1}}], OutcomeUnknown),
        ([statements()], OutcomeUnknown),  # no response to either
    ]
    for script, error in outcomes:
        first, second = Edge(*script).answer(both)
        assert [type(first), type(second)] == [error, error]
        assert first is not second  # each carries a delta of its own


def test_a_role_without_partiql_writes_one_by_one() -> None:
    there = refusal("ConditionalCheckFailedException", Item=item("b"))
    edge = Edge(refusal("AccessDeniedException"), there)
    assert edge.answer(PutMany((item("b"),))) == (AlreadyThere(item("b")),)
    assert [name for name, _ in edge.client.calls] == ["batch_execute_statement", "put_item"]
    assert "ConditionExpression" in edge.client.calls[1][1]
    unknown = Edge(refusal("UnrecognizedClientException"))  # nor is another request accepted
    assert [type(answer) for answer in unknown.answer(PutMany((item("b"),)))] == [NotAllowed]
    denied = statements(*[{"Code": "AccessDenied", "Message": "No."}] * 3)
    edge = Edge(denied, a={}, b=there, c=refusal("ConditionalCheckFailedException"))
    change = {"change": {"N": "7"}}
    answer = edge.answer(DeleteMany(tuple({**item(sk), **change} for sk in "abc")))
    assert answer == (None, AlreadyThere(item("b")), None)  # a key without an item is gone
    assert {
        arguments["ExpressionAttributeNames"]["#0"] for _, arguments in edge.client.calls[1:]
    } == {"change"}


# -- clients


def test_given_clients_are_used_and_the_others_are_made() -> None:
    given = Script([{}, {"Item": item()}])
    clients = {"us-east-1": cast(Any, given)}
    assert DynamoTable.of(settings(), clients, "us-east-1").answer(Get(KEY)) is None
    assert DynamoTable.of(settings(), clients).answer(At("us-east-1", Get(KEY))) == item()
    both = {"us-east-1": Script([{}]), "eu-west-1": Script([{"Item": item()}])}
    table = DynamoTable("counters", "eu-west-1", cast(Any, both.__getitem__))
    assert [table.answer(At("us-east-1", Get(KEY))), table.answer(Get(KEY))] == [None, item()]


def test_a_process_makes_one_client_a_region_with_our_settings() -> None:
    client = make_client("eu-west-1", "http://127.0.0.1:1")
    config: Any = client.meta.config
    assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (2, 5, 50)
    assert config.retries == {"mode": "standard", "total_max_attempts": 4}
    assert (client.meta.endpoint_url, client.meta.region_name) == (
        "http://127.0.0.1:1",
        "eu-west-1",
    )
    assert make_client("eu-west-1", "http://127.0.0.1:1") is client
    assert make_client("us-east-1", "http://127.0.0.1:1") is not client
    assert make_client("eu-west-1", "http://127.0.0.1:2") is not client
    for wrong in ("http://127.0.0.1:port", "ftp://127.0.0.1"):
        with pytest.raises(InvalidSettings, match=f"refuses endpoint_url='{wrong}'"):
            make_client("eu-west-1", wrong)


@pytest.mark.usefixtures("unreadable_credentials")
def test_unreadable_credentials_are_not_the_endpoints_fault() -> None:
    with pytest.raises(NotAllowed, match="boto3 makes no client: "):
        make_client("eu-west-1", session=get_session())


def test_a_client_is_of_boto3s_default_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = get_session()
    own.set_credentials("botocore", "secret")
    monkeypatch.setattr("ledger.tables.boto._session", lambda: own)
    for port, default, key in (
        (8, boto3.Session("default", "secret"), "default"),
        (9, None, "botocore"),
    ):
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", default)
        client: Any = make_client("eu-west-1", f"http://127.0.0.1:{port}")
        assert client._request_signer._credentials.access_key == key


def test_a_default_session_that_hides_botocores_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What boto3 does not document a newer one may lack."""
    default = SimpleNamespace(
        profile_name="default", get_credentials=lambda: Credentials("k", "s", "t")
    )
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", default)
    made: Any = make_client("eu-west-1", "http://127.0.0.1:10")
    signs = made._request_signer._credentials
    assert (signs.access_key, signs.secret_key, signs.token) == ("k", "s", "t")
