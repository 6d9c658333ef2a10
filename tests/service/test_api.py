"""The HTTP API: what is answered, and that what is answered is so."""

import base64
import json
from typing import Any

import pytest

from compactor import Compactor
from ledger import errors
from ledger.requests import Get, GetMany, Put, PutMany, Query, Together
from reader import Reader
from service import observe
from tests.service.http_client import SETTINGS, ULID, ULID_AT, Answer, Client, Table, refused

COUNTER = "stock:85123A"
DELTAS = f"/counters/{COUNTER}/deltas"
AT = "2010-12-01T08:26:00Z"
UUID7 = "01942138-3806-7abc-8def-0123456789ab"
UUID4 = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"


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
    assert [client.add(-6, key, at=AT).status for key in ("a,b", " a,b ", "a")] == [201, 200, 201]
    assert client.value() == -24


def test_a_ulid_and_a_uuidv7_carry_their_time_and_any_other_key_needs_one() -> None:
    for key in (ULID, UUID7):
        client = Client()
        assert client.add(1, key).status == 201
        assert client.add(1, key, at=ULID_AT).status == 200, "the same time"
        refused(client.add(1, key, at=AT), 422, "invalid-time")
        assert client.value() == 1
    for key in (UUID4, "536365/1", "01JGGKGE064BG4X58772SZHBMI", "81JGGKGE064BG4X58772SZHBM0"):
        answer = Client().add(1, key)
        refused(answer, 422, "invalid-time")
        assert "needs at" in answer.said["detail"]


def test_a_change_without_a_key_or_with_one_that_is_not_text_is_refused() -> None:
    for key in (None, "", "  "):
        refused(Client().add(1, key), 400, "idempotency-key-missing")
    for key in ('""', "\u00e9", "k" * 1_025):
        refused(Client().add(1, key, at=AT), 422, "invalid-key")


def test_a_time_out_of_range_is_refused() -> None:
    for at in ("2999-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"):
        refused(Client().add(1, "k", at=at), 422, "invalid-time")
    refused(Client().add(1, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), 422, "invalid-time")


def test_a_fail_over_names_the_region_of_the_first_attempt() -> None:
    client = Client()
    assert client.add(1, region="us-east-1").said["region"] == "us-east-1"
    assert Reader(SETTINGS, table=client.table).read(COUNTER).by_region == {"eu-west-1": 0, "us-east-1": 1}
    refused(client.add(1, region="mars-north-1"), 404, "no-such-region")
    refused(client.add(1, region="Mars!"), 422, "invalid-request")


def of_body(more: str) -> bytes:
    return f'{{"counter": "{COUNTER}"{more}}}'.encode()


BODIES = [
    *((body, 400, "malformed-request") for body in (b"", b"  ", b"{", b"null", b'[{"change": 1}]', b'{"change": NaN}')),
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
]
NO_CHANGES: tuple[object, ...] = (1.0, 1.5, "1", True, None, [1], {}, 10**18 + 1, -(10**18) - 1, 10**38 - 1, 10**400)


def test_a_body_that_is_not_as_described_is_refused() -> None:
    client = Client()
    for body, status, name in BODIES:
        refused(client.ask("POST", DELTAS, body, {"Idempotency-Key": ULID}), status, name)
    for change in NO_CHANGES:
        answer = client.add(change)
        refused(answer, 422, "invalid-request")
        assert answer.said["errors"][0]["at"] == "body/change"
    assert client.table.items == {}


def test_a_body_is_json_in_every_spelling_and_nothing_else() -> None:
    good = ("application/json", "Application/JSON", "application/json;charset=UTF-8", " application/json ")
    for media_type in (*good, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        headers = {"idempotency-key": ULID, "CONTENT-TYPE": media_type}
        answer = Client().ask("POST", DELTAS, {"counter": COUNTER, "change": 1}, headers)
        if media_type in good:
            assert answer.status == 201
        else:
            refused(answer, 415, "not-json")


def event(path: str, method: str = "GET", headers: dict[str, str] | None = None, stage: str = "$default") -> Any:
    """An event as AWS documents it, field by field."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "agent"}
    iam = {"accessKey": "AKIA", "accountId": "111122223333", "userArn": "arn:aws:iam::x"}
    where = {"domainName": "id.execute-api.eu-west-1.amazonaws.com", "domainPrefix": "id", "http": http, "stage": stage}
    whose = {"accountId": "123456789012", "apiId": "api-id", "authorizer": {"iam": iam}, "requestId": "id"}
    when = {"routeKey": "$default", "time": "12/Mar/2020:19:03:58 +0000", "timeEpoch": 1583348638390}
    asked = {"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers or {}}
    return asked | {"requestContext": {**whose, **where, **when}, "isBase64Encoded": False}


def test_an_event_of_api_gateway_may_have_a_stage_in_its_path_and_its_body_in_base64() -> None:
    query = {"rawQueryString": f"counter={COUNTER}"}
    assert Client().send(event("/dev/counters", stage="dev") | query).status == 200
    assert Client().send(event("/counters", stage="dev") | query).status == 200, "a custom domain has none"
    client, headers = Client(), {"Idempotency-Key": ULID, "Content-Type": "application/json; charset=utf-8"}
    encoded = event(DELTAS, "POST", headers) | {"isBase64Encoded": True}
    body = base64.b64encode(b'{"counter": "stock:85123A", "change": 1}').decode()
    assert client.send(encoded | {"body": body}).status == 201
    assert client.send(encoded | {"body": "%"}).problem == "malformed-request"


def test_a_path_without_a_name_or_with_another_one_than_the_body_is_refused() -> None:
    client, key = Client(), {"Idempotency-Key": ULID}
    for in_path in ("b%C3%BC", "a%20b", "a%2525b", "", "%00", "x" * 257):
        answer = client.ask("POST", f"/counters/{in_path}/deltas", {"counter": "a", "change": 1}, key)
        refused(answer, 404, "invalid-counter")
    refused(client.ask("POST", "/counters/b/deltas", {"counter": "a", "change": 1}, key), 404, "other-counter")
    answer = client.ask("POST", "/counters/a/deltas", {"change": 1}, key)
    refused(answer, 422, "invalid-request")
    assert [error["at"] for error in answer.said["errors"]] == ["body/counter"]
    assert client.table.items == {}


def test_a_parameter_that_a_route_does_not_have_or_has_twice_is_refused() -> None:
    client = Client()
    one = {"counter": "a", "change": 1}
    for method, target, body in (
        *(("GET", f"{path}?counter=a&", None) for path in ("/counters", "/history", "/standing")),
        ("POST", "/counters/a/deltas?", one),
        ("POST", "/deltas?", {"deltas": [one | {"idempotency_key": ULID}]}),
    ):
        for query, name in (("untill=2025-01-01T00:00:00Z", "untill"), ("x", "x"), ("%78=1", "x"), ("y=1&y=1", "y")):
            answer = client.ask(method, target + query, body, {"Idempotency-Key": ULID})
            refused(answer, 422, "invalid-request")
            assert [error["at"] for error in answer.said["errors"]] == [f"query/{name}"]
    assert client.table.items == {}
    client.add(5, counter="a,b")
    assert client.read("a,b").said["value"] == 5
    for path in ("/counters", "/history"):
        refused(client.ask("GET", f"{path}?counter=a&counter=b"), 422, "invalid-request")


def test_head_is_answered_like_get_without_a_body_and_options_says_the_methods() -> None:
    client = Client()
    client.add(5)
    for target in (f"/counters?counter={COUNTER}", f"/history?counter={COUNTER}", "/counters?counter=a b", "/x"):
        head, get = client.ask("HEAD", target), client.ask("GET", target)
        assert (head.status, head.headers, head.body) == (get.status, get.headers, "")
        assert get.headers["Cache-Control"] == "no-store"
    assert client.ask("HEAD", "/deltas").headers["Allow"] == "POST, OPTIONS"
    gets, posts = "GET, HEAD, OPTIONS", "POST, OPTIONS"
    for path, allow in (("/counters", gets), ("/history", gets), ("/deltas", posts), ("/counters/x/deltas", posts)):
        answer = client.ask("OPTIONS", path, headers={"Origin": "https://shop.example"})
        assert (answer.status, answer.headers["Allow"], answer.body) == (204, allow, "")
        assert not [name for name in answer.headers if name.startswith("Access-Control")], "closed, unless told"


def test_a_page_of_a_named_origin_may_call_and_read_every_answer_and_no_other_page_may() -> None:
    client = Client(origins=["https://shop.example", "http://localhost:5173"])
    for origin in ("https://shop.example", "http://localhost:5173"):
        preflight = client.ask("OPTIONS", "/counters/x/deltas", headers={"origin": origin})
        assert preflight.headers["Access-Control-Allow-Methods"] == "GET,HEAD,POST"
        assert {"Idempotency-Key", "Content-Type"} <= set(preflight.headers["Access-Control-Allow-Headers"].split(","))
        headers = {"Idempotency-Key": ULID, "Origin": origin}
        good = client.ask("POST", "/counters/x/deltas", {"counter": "x", "change": 1}, headers)
        bad = [client.ask("POST", "/deltas", "{", headers), client.ask("GET", "/history?counter=a b", None, headers)]
        for answer in (preflight, good, *bad):
            assert answer.headers["Access-Control-Allow-Origin"] == origin
            assert answer.headers["Vary"] == "Origin"
            assert "Idempotency-Hit" in answer.headers["Access-Control-Expose-Headers"]
    for headers in ({"Origin": "https://evil.example"}, {}):
        answer = client.ask("GET", "/counters?counter=x", None, headers)
        assert (answer.status, answer.headers.get("Access-Control-Allow-Origin")) == (200, None)
        assert answer.headers.get("Vary") == ("Origin" if headers else None)


def test_what_is_not_there_is_said_as_a_problem() -> None:
    paths = ("/", "/counter/x", "/counters/", "/counters/x", "/counters/x/history", "/counters/x/holds//capture")
    for path in (*paths, "/try-it"):
        for method in ("GET", "POST", "OPTIONS"):
            if "//" not in path or method == "POST":
                body = {"counter": "x"} if method == "POST" else None
                refused(Client().ask(method, path, body), 404, "no-such-route")
    for method, path, allow in (
        ("DELETE", "/counters", "GET, HEAD, OPTIONS"),
        ("POST", "/history", "GET, HEAD, OPTIONS"),
        ("PUT", "/counters/x/deltas", "POST, OPTIONS"),
        ("GET", "/counters/x/deltas", "POST, OPTIONS"),
        ("GET", "/deltas", "POST, OPTIONS"),
    ):
        answer = Client().ask(method, path)
        refused(answer, 405, "method-not-allowed")
        assert answer.headers["Allow"] == allow


def test_a_balance_says_all_that_a_read_knows() -> None:
    client = Client()
    client.add(-6)
    client.add(10, UUID7, region="us-east-1")
    known = {"counter": COUNTER, "value": 4, "count": 2, "as_of": "2025-01-01T09:50:00.000Z", "pending": 2}
    more = {"by_region": {"eu-west-1": -6, "us-east-1": 10}, "cached": False, "closed": True}
    assert client.read().said == known | more
    for changes in ((10**18,), (-(10**18),), (10**18, 10**18 - 1, 10**18 - 2)):
        client = Client()
        for n, change in enumerate(changes):
            assert client.add(change, f"key {n}", at=AT).status == 201
        assert client.read().said["value"] == client.value() == sum(changes), "exact, beyond a double"


def test_max_age_allows_the_cache_and_consistent_decides_how_the_table_is_read() -> None:
    client = Client()
    client.read(query="&max_age=5")
    client.add(1)
    cached = client.read(query="&max_age=5").said
    assert (cached["value"], cached["cached"]) == (0, True)
    assert client.read().said["value"] == 1
    table = Table()
    for query in ("", "&consistent=true", "&consistent=false"):
        assert Client(table).read(query=query).status == 200
    assert table.strong == [True, True, False]


def test_a_bad_parameter_of_a_read_or_a_history_is_refused() -> None:
    for age in ("-1", "nan", "inf", "1e10", "soon", "", "1&max_age=2"):
        refused(Client().read(query=f"&max_age={age}"), 422, "invalid-request")
    refused(Client().read(query="&consistent=maybe"), 422, "invalid-request")
    for query in ("limit=0", "limit=1001", "limit=x", "since=2010-12-01", "until=1735724120"):
        refused(Client().history(query=f"&{query}"), 422, "invalid-request")


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
    for bad in ("", "x", "%00", "zz", "A" * 300, "_" * 60, *made_up):
        refused(client.history(query=f"&cursor={bad}"), 404, "invalid-cursor")
    refused(client.history("other", f"&cursor={following}"), 404, "invalid-cursor")


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
    assert sum(client.metrics.metric_set[observe.DELTAS_REFUSED]["Value"]) == 5


def test_a_bulk_holds_one_to_a_hundred_changes() -> None:
    client = Client()
    delta = {"counter": "c", "change": 1, "at": AT}
    hundred = [delta | {"idempotency_key": f"key {n}"} for n in range(100)]
    assert {result["status"] for result in client.ask("POST", "/deltas", {"deltas": hundred}).said["results"]} == {201}
    assert client.value("c") == 100
    wrong: object
    for wrong in ([], hundred + hundred[:1], None, {}, "x"):
        refused(client.ask("POST", "/deltas", {"deltas": wrong}), 422, "invalid-request")


FAILURES: list[tuple[Exception, int, str]] = [
    (errors.Throttled("no"), 429, "throttled"),
    (errors.Unavailable("no"), 503, "unavailable"),
    (errors.TransactionConflict("no"), 503, "unavailable"),
    (errors.OutcomeUnknown("no"), 504, "outcome-unknown"),
    (errors.NotAllowed("no"), 500, "misconfigured"),
    (errors.TableMissing("no"), 500, "misconfigured"),
    (RuntimeError("secret"), 500, "internal"),
]
OF_READS = [
    (errors.Throttled("no"), 429, "throttled"),
    (errors.ReadTooSlow("no"), 503, "unavailable"),
    (errors.NotYetReplicated("no"), 503, "not-yet-replicated"),
    (errors.DamagedItem("pk", "sk", "why"), 500, "damaged"),
]


def test_a_failure_of_the_table_says_what_to_do_next() -> None:
    for error, status, name in FAILURES:
        client = Client(Table(error, Put, PutMany))
        answer = client.add(123_454_321)
        refused(answer, status, name)
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
    for error, status, name in OF_READS:
        client = Client(Table(error, Get, GetMany, Query))
        refused(client.read(), status, name)
        refused(client.history(), status, name)


READS = ("/counters?counter=c", "/counters?prefix=", "/history?counter=c", "/standing?counter=seats:gig")
WRONG_READS = (
    *(path for read in READS for path in (f"{read}&no=1", f"{read}&counter=d", read.partition("?")[0])),
    *("/nothing", "/deltas", "/counters/c/deltas", "/standing?counter=c", "/counters?counter=c&max_age=-1"),
    *("/history?counter=c&cursor=x", "/history?counter=c&since=x"),
    *("/counters?prefix=&after=x", "/counters?prefix=&limit=0"),
)


def test_no_problem_of_a_read_says_that_nothing_was_written() -> None:
    damaged = errors.DamagedItem("pk", "sk", "why")
    raised = [kind("no") for kind in errors.LedgerError.__subclasses__() if kind is not errors.DamagedItem]
    raised += [kind("no") for kind in errors.TableError.__subclasses__()]
    answers = []
    for error in (damaged, *raised):
        client = Client(Table(error, Get, GetMany, Query, Together))
        answers += [client.ask("GET", path) for path in READS]
    answers += [Client().ask(method, path) for path in WRONG_READS for method in ("GET", "HEAD")]
    for answer in answers:
        assert (answer.status >= 400, "written" in answer.body) == (True, False), answer
    assert "Nothing was written" in Client().ask("POST", "/counters/c/deltas", {"counter": "c"}).body


def test_no_line_above_debug_names_an_amount() -> None:
    for error in (None, *(error for error, _, _ in FAILURES)):
        client = Client(Table(error, Put, PutMany))
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
    assert Client(try_it=True).ask("OPTIONS", "/try-it").headers["Allow"] == "GET, HEAD, OPTIONS"
    assert 'src="http' not in answer.body.replace("'", '"')
    assert len(answer.body) < 5_000_000, "Lambda answers 6 MB at most"
    assert json.loads(Client(try_it=True).ask("GET", "/try-it?format=json").body)["openapi"].startswith("3.1")
