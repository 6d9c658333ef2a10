"""The HTTP API: what is answered, and that what is answered is so."""

import base64
import json
from typing import Any

import pytest

from compactor import Compactor
from ledger import errors
from ledger.memory import MemoryTable
from ledger.requests import Get, GetMany, Put, PutMany, Query, Request, Together
from reader import Reader
from service import observe
from tests.service.http_client import SETTINGS, ULID, ULID_AT, Answer, Client

COUNTER = "stock:85123A"
AT = "2010-12-01T08:26:00Z"
UUID7 = "01942138-3806-7abc-8def-0123456789ab"
UUID4 = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"


def refused(answer: Answer, status: int, name: str) -> None:
    assert (answer.status, answer.problem) == (status, name)


def test_a_change_is_recorded_once_and_then_replayed_and_another_one_is_a_conflict() -> None:
    client = Client()
    first, second = client.add(-6), client.add(-6)
    assert (first.status, second.status) == (201, 200)
    assert "Idempotency-Hit" not in first.headers
    assert second.headers["Idempotency-Hit"] == "true"
    assert first.said | {"outcome": "replayed"} == second.said
    assert first.said["at"] == ULID_AT
    refused(client.add(-7), 409, "token-conflict")
    assert client.metrics.metric_set[observe.DELTAS_CONFLICTING]["Value"] == [1.0]
    assert client.value() == -6


def test_any_key_will_do_with_its_time() -> None:
    client = Client()
    assert client.add(-6, "536365/1", at=AT).status == 201
    assert client.add(-6, "536365/1", at="2010-12-01T09:26:00+01:00").status == 200
    assert client.add(-6, '"536365/1"', at=AT).status == 200, "the IETF draft puts the key in quotes"
    assert client.add(-6, r'"a \"b\" \\"', at=AT).status == 201
    assert client.add(-6, r'a "b" \ '.strip(), at=AT).status == 200
    assert client.value() == -12


@pytest.mark.parametrize("key", [ULID, UUID7])
def test_a_ulid_and_a_uuidv7_carry_their_time(key: str) -> None:
    client = Client()
    assert client.add(1, key).status == 201
    assert client.add(1, key, at=ULID_AT).status == 200, "the same time"
    refused(client.add(1, key, at=AT), 422, "invalid-time")
    assert client.value() == 1


@pytest.mark.parametrize("key", [UUID4, "536365/1", "01JGGKGE064BG4X58772SZHBMI", "81JGGKGE064BG4X58772SZHBM0"])
def test_a_key_without_a_time_needs_one(key: str) -> None:
    answer = Client().add(1, key)
    refused(answer, 422, "invalid-time")
    assert "needs at" in answer.said["detail"]


def test_a_change_without_a_key_is_refused() -> None:
    for key in (None, "", "  "):
        refused(Client().add(1, key), 400, "idempotency-key-missing")
    assert Client().add(1, '""').problem == "invalid-key"
    assert Client().add(1, "\u00e9", at=AT).problem == "invalid-key"
    assert Client().add(1, "k" * 1_025, at=AT).problem == "invalid-key"


def test_a_fail_over_names_the_region_of_the_first_attempt() -> None:
    client = Client()
    assert client.add(1, region="us-east-1").said["region"] == "us-east-1"
    assert Reader(SETTINGS, table=client.table).read(COUNTER).by_region == {"eu-west-1": 0, "us-east-1": 1}
    refused(client.add(1, region="mars-north-1"), 404, "no-such-region")
    assert client.add(1, region="Mars!").problem == "invalid-request"


@pytest.mark.parametrize(
    "change", [1.0, 1.5, "1", True, None, [1], {}, 10**18 + 1, -(10**18) - 1, 10**37, 10**38 - 1, 10**400]
)
def test_a_change_that_is_no_whole_number_in_range_is_refused(change: object) -> None:
    client = Client()
    answer = client.add(change)
    refused(answer, 422, "invalid-request")
    assert answer.said["errors"][0]["at"] == "body/change"
    assert client.table.items == {}


def of_body(more: str) -> bytes:
    return f'{{"counter": "{COUNTER}"{more}}}'.encode()


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        (b"", 400, "malformed-request"),
        (b"  ", 400, "malformed-request"),
        (b"{", 400, "malformed-request"),
        (b"null", 400, "malformed-request"),
        (b'[{"change": 1}]', 400, "malformed-request"),
        (b'{"change": NaN}', 400, "malformed-request"),
        (of_body(', "change": 1, "change": 2'), 400, "malformed-request"),
        (b'{"change": ' + b"1" * 5_000 + b"}", 400, "malformed-request"),
        (b"[" * 100_000, 400, "malformed-request"),
        (b'{"change": "\xff"}', 400, "malformed-request"),
        (of_body(', "change": 1') + b" " * 1_048_576, 413, "body-too-large"),
        (b" " * 3_000_000, 413, "body-too-large"),
        (of_body(""), 422, "invalid-request"),
        (of_body(', "change": 1, "note": "x"'), 422, "invalid-request"),
        (of_body(', "change": 1, "at": 1735724120070'), 422, "invalid-request"),
        (of_body(', "change": 1, "at": "2025-01-01"'), 422, "invalid-request"),
        (of_body(', "change": 1, "region": 7'), 422, "invalid-request"),
    ],
)
def test_a_body_that_is_not_as_described_is_refused(body: bytes, status: int, name: str) -> None:
    client = Client()
    refused(client.ask("POST", f"/counters/{COUNTER}/deltas", body, {"Idempotency-Key": ULID}), status, name)
    assert client.table.items == {}


@pytest.mark.parametrize("at", ["2999-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"])
def test_a_time_out_of_range_is_refused(at: str) -> None:
    refused(Client().add(1, "k", at=at), 422, "invalid-time")
    refused(Client().add(1, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), 422, "invalid-time")


JSON = ("application/json", "Application/JSON", "application/json;charset=UTF-8", " application/json ")


@pytest.mark.parametrize("media_type", [*JSON, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_a_body_is_json_in_every_spelling_and_nothing_else(media_type: str) -> None:
    headers = {"idempotency-key": ULID, "CONTENT-TYPE": media_type}
    answer = Client().ask("POST", f"/counters/{COUNTER}/deltas", {"counter": COUNTER, "change": 1}, headers)
    if media_type in JSON:
        assert answer.status == 201
    else:
        refused(answer, 415, "not-json")


def test_a_body_in_base64_is_read_like_any_other() -> None:
    client = Client()
    headers = {"Idempotency-Key": ULID, "Content-Type": "application/json; charset=utf-8"}
    body = base64.b64encode(b'{"counter": "stock:85123A", "change": 1}').decode()
    encoded = event(f"/counters/{COUNTER}/deltas", "POST", headers) | {"body": body, "isBase64Encoded": True}
    assert client.send(encoded).status == 201
    assert client.send(encoded | {"body": "%"}).problem == "malformed-request"


def event(path: str, method: str = "GET", headers: dict[str, str] | None = None, stage: str = "$default") -> Any:
    """An event as AWS documents it, field by field."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "agent"}
    iam = {"accessKey": "AKIA", "accountId": "111122223333", "userArn": "arn:aws:iam::x"}
    where = {"domainName": "id.execute-api.eu-west-1.amazonaws.com", "domainPrefix": "id", "http": http, "stage": stage}
    whose = {"accountId": "123456789012", "apiId": "api-id", "authorizer": {"iam": iam}, "requestId": "id"}
    when = {"routeKey": "$default", "time": "12/Mar/2020:19:03:58 +0000", "timeEpoch": 1583348638390}
    asked = {"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers or {}}
    return asked | {"requestContext": {**whose, **where, **when}, "isBase64Encoded": False}


def test_a_stage_in_the_path_is_not_part_of_the_route() -> None:
    asked = {"rawQueryString": f"counter={COUNTER}"}
    assert Client().send(event(f"/dev/counters/{COUNTER}", stage="dev") | asked).status == 200
    assert Client().send(event(f"/counters/{COUNTER}", stage="dev") | asked).status == 200, "a custom domain has none"


@pytest.mark.parametrize("in_path", ["b%C3%BC", "a%20b", "a%2525b", "", "%00", "x" * 257])
def test_what_is_no_name_or_cannot_stand_in_a_path_is_refused(in_path: str) -> None:
    client = Client()
    for method, path in (("GET", ""), ("GET", "/history"), ("POST", "/deltas")):
        asked = f"/counters/{in_path}{path}?counter=a"
        refused(client.ask(method, asked, {"counter": "a", "change": 1}), 404, "invalid-counter")
    assert client.table.items == {}


def test_a_path_that_names_another_counter_than_the_request_or_is_not_confirmed_is_refused() -> None:
    client, key = Client(), {"Idempotency-Key": ULID}
    for answer in (
        client.ask("POST", "/counters/b/deltas", {"counter": "a", "change": 1}, key),
        client.ask("GET", "/counters/b?counter=a"),
        client.ask("GET", "/counters/b/history?counter=a"),
        client.ask("GET", "/counters/a/history?counter=a/history"),
    ):
        refused(answer, 404, "other-counter")
    for answer, where in (
        (client.ask("POST", "/counters/a/deltas", {"change": 1}, key), "body/counter"),
        (client.ask("GET", "/counters/a"), "query/counter"),
        (client.ask("GET", "/counters/a/history"), "query/counter"),
    ):
        refused(answer, 422, "invalid-request")
        assert where in [each["at"] for each in answer.said["errors"]]
    assert client.table.items == {}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        *(
            ("GET", f"{path}?counter=a&")
            for path in ("/counters/a", "/counters", "/counters/a/history", "/history", "/standing")
        ),
        *(("POST", f"{path}?") for path in ("/counters/a/deltas", "/deltas")),
    ],
)
def test_a_parameter_that_a_route_does_not_have_or_has_twice_is_refused(method: str, target: str) -> None:
    client = Client()
    body: dict[str, Any] = {"deltas": [{"counter": "a", "change": 1, "idempotency_key": ULID}]}
    body = {"counter": "a", "change": 1} if "/a/" in target else body
    for query, name in (("untill=2025-01-01T00:00:00Z", "untill"), ("x", "x"), ("%78=1", "x"), ("y=1&y=1", "y")):
        answer = client.ask(method, target + query, body if method == "POST" else None, {"Idempotency-Key": ULID})
        refused(answer, 422, "invalid-request")
        assert [each["at"] for each in answer.said["errors"]] == [f"query/{name}"]
    assert client.table.items == {}


def test_a_counter_that_is_given_twice_is_not_the_counter_with_a_comma() -> None:
    client = Client()
    client.add(5, counter="a,b")
    assert client.read("a,b").said["value"] == 5
    for path in ("/counters", "/history", "/counters/a,b"):
        assert client.ask("GET", f"{path}?counter=a&counter=b").problem == "invalid-request"


def test_head_is_answered_like_get_without_a_body() -> None:
    client = Client()
    client.add(5)
    named = f"counter={COUNTER}"
    for target in (f"/counters/{COUNTER}?{named}", f"/history?{named}", "/counters?counter=a b", "/x"):
        head, get = client.ask("HEAD", target), client.ask("GET", target)
        assert (head.status, head.headers, head.body) == (get.status, get.headers, "")
    assert client.ask("HEAD", "/deltas").headers["Allow"] == "POST, OPTIONS"


def test_options_says_the_methods() -> None:
    gets, posts = "GET, HEAD, OPTIONS", "POST, OPTIONS"
    for path, allow in (("/counters/x", gets), ("/history", gets), ("/deltas", posts)):
        answer = Client().ask("OPTIONS", path, headers={"Origin": "https://shop.example"})
        assert (answer.status, answer.headers["Allow"], answer.body) == (204, allow, "")
        assert not [name for name in answer.headers if name.startswith("Access-Control")], "closed, unless told"


def test_a_page_of_a_named_origin_may_call_and_read_every_answer_and_no_other_page_may() -> None:
    client = Client(origins=["https://shop.example", "http://localhost:5173"])
    key = {"Idempotency-Key": ULID}
    for origin in ("https://shop.example", "http://localhost:5173"):
        preflight = client.ask("OPTIONS", "/counters/x/deltas", headers={"origin": origin})
        assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
        assert {"Idempotency-Key", "Content-Type"} <= set(preflight.headers["Access-Control-Allow-Headers"].split(","))
        asked = key | {"Origin": origin}
        good = client.ask("POST", "/counters/x/deltas", {"counter": "x", "change": 1}, asked)
        bad = [client.ask("POST", "/deltas", "{", asked), client.ask("GET", "/history?counter=a b", None, asked)]
        for answer in (preflight, good, *bad):
            assert answer.headers["Access-Control-Allow-Origin"] == origin
            assert answer.headers["Vary"] == "Origin"
            assert "Idempotency-Hit" in answer.headers["Access-Control-Expose-Headers"]
    for headers in ({"Origin": "https://evil.example"}, {}):
        answer = client.ask("GET", "/counters?counter=x", None, headers)
        assert (answer.status, answer.headers.get("Access-Control-Allow-Origin")) == (200, None)


@pytest.mark.parametrize("name", ["a%2Fb", "a/history", "x?y", "/", "a/../b", "100%", "a,b", "a+b"])
def test_every_name_can_stand_in_the_body_and_in_the_query(name: str) -> None:
    client = Client()
    bulk = {"deltas": [{"counter": name, "change": 5, "idempotency_key": ULID}]}
    assert client.ask("POST", "/deltas", bulk).said["results"][0]["status"] == 201
    encoded = "".join(f"%{ord(letter):02X}" for letter in name)
    assert client.ask("GET", f"/counters?counter={encoded}").said["value"] == 5
    assert len(client.ask("GET", f"/history?counter={encoded}").said["entries"]) == 1


@pytest.mark.parametrize(
    ("method", "path", "status", "name", "allow"),
    [
        *(("GET", path, 404, "no-such-route", None) for path in ("/", "/counter/x", "/try-it")),
        ("GET", "/counters/", 404, "invalid-counter", None),
        ("DELETE", "/counters/x", 405, "method-not-allowed", "GET, HEAD, OPTIONS"),
        ("PUT", "/counters/x/deltas", 405, "method-not-allowed", "POST, OPTIONS"),
        ("GET", "/counters/x/deltas", 405, "method-not-allowed", "POST, OPTIONS"),
        ("POST", "/counters/x", 405, "method-not-allowed", "GET, HEAD, OPTIONS"),
        ("POST", "/counters/x/history", 405, "method-not-allowed", "GET, HEAD, OPTIONS"),
        ("GET", "/deltas", 405, "method-not-allowed", "POST, OPTIONS"),
        ("OPTIONS", "/counter/x", 404, "no-such-route", None),
    ],
)
def test_what_is_not_there_is_said_as_a_problem(
    method: str, path: str, status: int, name: str, allow: str | None
) -> None:
    answer = Client().ask(method, path)
    assert (answer.status, answer.problem, answer.headers.get("Allow")) == (status, name, allow)


def test_a_value_beyond_a_double_is_exact() -> None:
    for changes in ((0,), (10**18,), (-(10**18),), (10**18, 10**18 - 1, 10**18 - 2)):
        client = Client()
        assert [client.add(change, f"key {n}", at=AT).status for n, change in enumerate(changes)] == [201] * len(
            changes
        )
        assert client.read().said["value"] == client.value() == sum(changes)


def test_a_balance_says_all_that_a_read_knows() -> None:
    client = Client()
    client.add(-6)
    client.add(10, UUID7, region="us-east-1")
    said = {"counter": COUNTER, "value": 4, "count": 2, "as_of": "2025-01-01T09:50:00.000Z", "pending": 2}
    assert client.read().said == said | {
        "by_region": {"eu-west-1": -6, "us-east-1": 10},
        "cached": False,
        "closed": True,
    }


def test_max_age_allows_the_cache_and_its_absence_does_not() -> None:
    client = Client()
    client.read(query="&max_age=5")
    client.add(1)
    cached = client.read(query="&max_age=5").said
    assert (cached["value"], cached["cached"]) == (0, True)
    assert client.read().said["value"] == 1


def test_consistent_decides_how_the_table_is_read() -> None:
    asked: list[bool] = []

    class Table(MemoryTable):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, GetMany):
                asked.append(request.consistent)
            return super().answer(request)

    client = Client(Table())
    for query in ("", "&consistent=true", "&consistent=false"):
        assert client.read(query=query).status == 200
    assert asked == [True, True, False]


READS = ("max_age=-1", "max_age=nan", "max_age=inf", "max_age=1e10", "max_age=soon", "max_age=", "max_age=1&max_age=2")
HISTORIES = ("limit=0", "limit=1001", "limit=x", "since=2010-12-01", "until=1735724120")


@pytest.mark.parametrize("query", [*READS, "consistent=maybe", *HISTORIES])
def test_a_bad_parameter_of_a_read_or_a_history_is_refused(query: str) -> None:
    ask = Client().history if query in HISTORIES else Client().read
    refused(ask(query=f"&{query}"), 422, "invalid-request")


def pages(client: Client, query: str) -> list[list[int]]:
    """The changes of every page."""
    answers: list[Answer] = [client.history(query=f"&{query}")]
    while (following := answers[-1].said["next"]) is not None:
        answers.append(client.history(query=f"&{query}&cursor={following}"))
    return [[entry["change"] for entry in answer.said["entries"]] for answer in answers]


def test_the_history_comes_in_pages_also_while_it_is_compacted() -> None:
    client = Client()
    for n in range(7):
        client.add(4**n, f"key {n}", at=f"2025-01-01T00:00:0{n}Z")
        if n == 4:
            tables = dict.fromkeys(SETTINGS.regions, client.table)
            Compactor(SETTINGS, tables=tables, clock=client.clock).compact(COUNTER)
    assert pages(client, "limit=3") == [[1, 4, 16], [64, 256, 1024], [4096]]
    assert pages(client, "limit=7") == [[4**n for n in range(7)]]
    between = "since=2025-01-01T00:00:02Z&until=2025-01-01T00:00:05Z&limit=2"
    assert pages(client, between) == [[16, 64], [256]]
    assert pages(client, "since=2025-01-02T00:00:00Z") == [[]]


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_a_cursor_of_another_history_is_refused() -> None:
    client = Client()
    for n in range(2):
        client.add(1, f"key {n}", at=AT)
    following = client.history(query="&limit=1").said["next"]
    made_up = (cursor("1.x.y.z"), cursor(f"1.{'Z' * 26}.eu-west-1.5f5704d1"), following[:-2])
    for bad in ("", "x", "%00", "zz", "A" * 300, *made_up):
        refused(client.history(query=f"&cursor={bad}"), 404, "invalid-cursor")
    assert client.history("other", f"&cursor={following}").problem == "invalid-cursor"


def test_each_change_of_a_bulk_has_a_result_of_its_own() -> None:
    client = Client()
    client.add(1, ULID, counter="taken")
    delta = {"counter": "c", "change": 1, "idempotency_key": ULID}
    fail_over = {"change": 4, "idempotency_key": "b\u00fc", "at": AT, "region": "us-east-1"}
    expected: list[tuple[object, int]] = [
        (delta, 201),
        (delta, 200),
        (delta | {"counter": "taken", "change": 2}, 409),
        (delta | {"change": "1"}, 422),
        (delta | {"counter": "two words"}, 422),
        (delta | {"idempotency_key": "no time"}, 422),
        (delta | fail_over, 201),
        (delta | {"region": "mars-north-1"}, 404),
        ("no object", 422),
    ]
    answer = client.ask("POST", "/deltas", {"deltas": [delta for delta, _ in expected]})
    assert answer.status == 200
    results = answer.said["results"]
    assert [result["status"] for result in results] == [status for _, status in expected]
    for result in results:
        assert (result["added"] is None) == (result["status"] > 201)
        assert (result["problem"] or {}).get("status") == (result["status"] if result["status"] > 201 else None)
    assert client.value("c") == 5


def test_a_bulk_holds_one_to_a_hundred_changes() -> None:
    client = Client()
    delta = {"counter": "c", "change": 1, "at": AT}
    hundred = [delta | {"idempotency_key": f"key {n}"} for n in range(100)]
    assert {result["status"] for result in client.ask("POST", "/deltas", {"deltas": hundred}).said["results"]} == {201}
    assert client.value("c") == 100
    wrong: object
    for wrong in ([], hundred + hundred[:1], None, {}, "x"):
        refused(client.ask("POST", "/deltas", {"deltas": wrong}), 422, "invalid-request")


class Failing(MemoryTable):
    """Answers every request of some kinds with an error."""

    def __init__(self, error: Exception, *kinds: type) -> None:
        super().__init__()
        self.error, self.kinds = error, kinds

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, self.kinds):
            if isinstance(request, PutMany):
                return tuple(self.error for _ in request.items)
            raise self.error
        return super().answer(request)


@pytest.mark.parametrize("path", ["/counters/a/b:85123A%26", "/counters/a/b:85123A%26/history"])
def test_a_read_with_a_name_in_its_path_and_none_in_the_query_says_what_to_send(path: str) -> None:
    client = Client()
    answer = client.ask("GET", path)
    refused(answer, 422, "invalid-request")
    (error,) = answer.said["errors"]
    assert error == {"at": "query/counter", "error": "name the counter again: ?counter=a/b:85123A%26"}
    assert client.ask("GET", f"{path}{error['error'].rpartition(' ')[2]}").status == 200
    (error,) = client.ask("GET", "/history").said["errors"]
    assert error == {"at": "query/counter", "error": "Field required"}


READS = (
    "/counters/c?counter=c",
    "/counters?counter=c",
    "/counters?prefix=",
    "/counters/c/history?counter=c",
    "/history?counter=c",
    "/counters/seats:gig/standing?counter=seats:gig",
    "/standing?counter=seats:gig",
)


def test_no_problem_of_a_read_says_that_nothing_was_written() -> None:
    damaged = errors.DamagedItem("pk", "sk", "why")
    raised = [kind("no") for kind in errors.LedgerError.__subclasses__() if kind is not errors.DamagedItem]
    raised += [kind("no") for kind in errors.TableError.__subclasses__()]
    for error in (damaged, *raised):
        client = Client(Failing(error, Get, GetMany, Query, Together))
        for path in READS:
            answer = client.ask("GET", path)
            assert (answer.status >= 400, "written" in answer.body) == (True, False), (path, error)
    wrong = [path for read in READS for path in (f"{read}&no=1", f"{read}&counter=d", read.partition("?")[0])]
    wrong += ["/counters/c?counter=d", "/counters/c%25?counter=c", "/nothing", "/deltas", "/counters/c/deltas"]
    wrong += ["/standing?counter=c", "/history?counter=c&cursor=x", "/history?counter=c&since=x"]
    wrong += ["/counters?prefix=&after=x", "/counters?prefix=&limit=0", "/counters?counter=c&max_age=-1"]
    for path in wrong:
        for method in ("GET", "HEAD"):
            answer = Client().ask(method, path)
            assert (answer.status >= 400, "written" in answer.body) == (True, False), path
    assert "Nothing was written" in Client().ask("POST", "/counters/c/deltas", {"counter": "c"}).body


FAILURES: list[tuple[Exception, int, str]] = [
    (errors.Throttled("no"), 429, "throttled"),
    (errors.Unavailable("no"), 503, "unavailable"),
    (errors.TransactionConflict("no"), 503, "unavailable"),
    (errors.OutcomeUnknown("no"), 504, "outcome-unknown"),
    (errors.NotAllowed("no"), 500, "misconfigured"),
    (errors.TableMissing("no"), 500, "misconfigured"),
    (RuntimeError("secret"), 500, "internal"),
]


@pytest.mark.parametrize(("error", "status", "name"), FAILURES)
def test_a_failure_of_the_table_says_what_to_do_next(error: Exception, status: int, name: str) -> None:
    client = Client(Failing(error, Put, PutMany))
    answer = client.add(123_454_321)
    refused(answer, status, name)
    assert ("Retry-After" in answer.headers) == (status in (429, 503, 504))
    assert ("Nothing was written" in answer.said["detail"]) == (name not in ("internal", "outcome-unknown"))
    assert "secret" not in answer.body
    if name == "outcome-unknown":
        assert "same idempotency key" in answer.said["detail"]
        assert answer.said["region"] == "eu-west-1"
    if name != "internal":  # of one change of a bulk it is the result
        delta = {"counter": "c", "change": 1, "idempotency_key": ULID}
        (result,) = client.ask("POST", "/deltas", {"deltas": [delta]}).said["results"]
        assert result["status"] == status
        assert result["problem"]["type"].endswith(name)


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (errors.Throttled("no"), 429, "throttled"),
        (errors.ReadTooSlow("no"), 503, "unavailable"),
        (errors.NotYetReplicated("no"), 503, "not-yet-replicated"),
        (errors.DamagedItem("pk", "sk", "why"), 500, "damaged"),
    ],
)
def test_a_failure_of_a_read_says_what_to_do_next(error: Exception, status: int, name: str) -> None:
    client = Client(Failing(error, Get, GetMany, Query))
    refused(client.read(), status, name)
    refused(client.history(), status, name)


def test_no_line_above_debug_names_an_amount() -> None:
    for error in (None, *(error for error, _, _ in FAILURES)):
        client = Client(Failing(error, Put, PutMany) if error else None)
        client.add(123_454_321)
        client.add(123_454_320)
        client.add("123454321")
        client.ask("POST", "/deltas", {"deltas": [{"counter": "c", "change": "123454321", "idempotency_key": ULID}]})
        assert "12345432" not in client.lines.getvalue()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Powertools leaves its files open
def test_the_page_to_try_it_is_there_only_when_asked_for_and_needs_no_other_host() -> None:
    answer = Client(try_it=True).ask("GET", "/try-it")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html"
    assert 'src="http' not in answer.body.replace("'", '"')
    assert len(answer.body) < 5_000_000, "Lambda answers 6 MB at most"
    assert json.loads(Client(try_it=True).ask("GET", "/try-it?format=json").body)["openapi"].startswith("3.1")
