"""The HTTP API: what is answered, and that what is answered is so."""

import base64
import itertools
import json
from typing import Any

import pytest

from compactor import Compactor
from ledger.core import errors
from ledger.core.errors import InvalidSettings
from ledger.core.requests import Get, GetMany, Key, Put, Query, Together, Update, keyed
from ledger.core.values import Lane
from ledger.lane import directory
from service.api.local import event_of
from service.canary.handler import COUNTER as CANARY
from service.writable import PREFIXES_FROM, prefixes_of
from tests.service.support import ULID, ULID_AT, Service
from tests.service.test_holds import add as limited
from tests.service.test_holds import end, hold, web
from tests.world import COUNTER, A, B

DELTAS = f"/counters/{COUNTER}/deltas"
AT = "2010-12-01T08:26:00Z"
UUID7 = "01942138-3806-7abc-8def-0123456789ab"
OTHERS = {
    ULID.lower(): ULID,
    UUID7[:20] + UUID7[20:].upper(): UUID7,
    UUID7.replace("-", "").upper(): UUID7,
}
OTHERS |= {f"{{{UUID7}}}": UUID7, f"urn:uuid:{UUID7}": UUID7}
"""Another spelling, and the canonical one."""


def test_a_change_is_recorded_once_then_replayed_or_a_conflict() -> None:
    service = web()
    first, second = service.add(-6), service.add(-6)
    assert (first.status, second.status) == (201, 200)
    assert "Idempotency-Hit" not in first.headers
    assert second.headers["Idempotency-Hit"] == "true"
    assert first.said | {"outcome": "replayed"} == second.said
    assert (first.said["at"], first.said["region"]) == (ULID_AT, A)
    service.add(-7).refused(409, "token-conflict")
    assert (service.counted("DeltasConflicting"), service.value()) == (1, -6)
    service = web()  # a fail-over names the Region of the first attempt
    assert service.add(1, region=B).said["region"] == B
    assert service.read().said["by_region"] == {A: 0, B: 1}
    service.add(1, region="mars-north-1").refused(404, "no-such-region")
    service.add(1, region="Mars!").refused(422, "invalid-request")


def test_a_key_carries_its_time_or_needs_one() -> None:
    for key in (ULID, UUID7):
        service = web()
        assert service.add(1, key).status == 201
        assert service.add(1, key, at=ULID_AT).status == 200, "the same time"
        service.add(1, key, at=AT).refused(422, "invalid-time")
        assert service.value() == 1
    for key in (
        "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
        "536365/1",
        ULID[:-1] + "I",
        "8" + ULID[1:],
    ):
        assert "needs at" in web().add(1, key).refused(422, "invalid-time")["detail"]
    for key, canonical in OTHERS.items():
        service = web()
        assert service.add(1, key).refused(422, "invalid-key")["canonical"] == canonical
        bulk = {"deltas": [{"counter": COUNTER, "change": 1, "idempotency_key": key}]}
        (result,) = service.ask("POST", "/deltas", bulk).said["results"]
        assert (result["status"], result["problem"]["canonical"], service.items) == (
            422,
            canonical,
            {},
        )
    for at in ("2999-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"):
        web().add(1, "k", at=at).refused(422, "invalid-time")
    web().add(1, "7" + "Z" * 25).refused(422, "invalid-time")


def test_a_key_is_text_with_or_without_quotes() -> None:
    service = web()
    assert service.add(-6, "536365/1", at=AT).status == 201
    assert service.add(-6, "536365/1", at="2010-12-01T09:26:00+01:00").status == 200
    assert service.add(-6, '"536365/1"', at=AT).status == 200, (
        "the IETF draft puts the key in quotes"
    )
    assert service.add(-6, r'"a \"b\" \\"', at=AT).status == 201
    assert service.add(-6, r'a "b" \ '.strip(), at=AT).status == 200
    assert [service.add(-6, key, at=AT).status for key in ("a,b", " a,b ", "a")] == [201, 200, 201]
    assert service.value() == -24
    for key in (None, "", "  "):
        web().add(1, key).refused(400, "idempotency-key-missing")
    for key in ('""', "\u00e9", "k" * 1_025):
        web().add(1, key, at=AT).refused(422, "invalid-key")


def test_each_change_of_a_bulk_has_a_result_of_its_own() -> None:
    service = web()
    service.add(1, ULID, counter="taken")
    delta = {"counter": "c", "change": 1, "idempotency_key": ULID}
    fail_over = {"change": 4, "idempotency_key": "b\u00fc", "at": AT, "region": B}
    expected: list[tuple[object, int]] = [
        *((delta, 201), (delta, 200), (delta | {"counter": "taken", "change": 2}, 409)),
        *(
            (delta | {"change": "1"}, 422),
            (delta | {"counter": "two words"}, 422),
            ("no object", 422),
        ),
        *((delta | {"idempotency_key": "no time"}, 422), (delta | fail_over, 201)),
        (delta | {"region": "mars-north-1"}, 404),
    ]
    answer = service.ask("POST", "/deltas", {"deltas": [delta for delta, _ in expected]})
    assert [result["status"] for result in answer.said["results"]] == [
        status for _, status in expected
    ]
    for result in answer.said["results"]:
        assert (result["added"] is None) == (result["status"] > 201)
        assert (result["problem"] or {}).get("status") == (
            result["status"] if result["status"] > 201 else None
        )
    assert (service.value("c"), service.counted("DeltasRefused")) == (5, 5)
    hundred = [
        {"counter": "d", "change": 1, "at": AT, "idempotency_key": f"key {n}"} for n in range(100)
    ]
    assert {
        each["status"]
        for each in service.ask("POST", "/deltas", {"deltas": hundred}).said["results"]
    } == {201}
    wrong: object
    for wrong in ([], hundred + hundred[:1], None, {}, "x"):
        service.ask("POST", "/deltas", {"deltas": wrong}).refused(422, "invalid-request")


def test_a_reserved_name_is_refused_and_writes_nothing() -> None:
    stock = ("stock:", "seats:")
    for counter, prefixes in ((CANARY, ()), ("ledger:", ()), ("other", stock)):
        service = web().start(prefixes=prefixes)
        (error,) = service.add(1, counter=counter).refused(422, "invalid-request")["errors"]
        assert (error["at"], "ledger:" in error["error"] or "stock:, seats:" in error["error"]) == (
            "counter",
            True,
        )
        deltas = [
            {"counter": name, "change": 1, "idempotency_key": ULID} for name in (counter, "stock:1")
        ]
        results = service.ask("POST", "/deltas", {"deltas": deltas}).said["results"]
        assert [each["status"] for each in results] == [422, 201]
        held = {"counter": counter, "amount": 1, "expires_s": 60, "at": ULID_AT}
        for path, more in (
            ("holds", held),
            *((f"holds/{ULID}.{A}.0.1/{how}", {}) for how in ("capture", "release")),
        ):
            service.post(path, {"counter": counter} | more).refused(422, "invalid-request")
        assert all(counter not in key.pk for key in service.items)
        assert service.read(counter).status == 200  # its value is no secret of the service
    assert prefixes_of({}) == prefixes_of({PREFIXES_FROM: "[]"}) == ()
    assert prefixes_of({PREFIXES_FROM: '["stock:", "seats:"]'}) == stock
    for wrong in ("stock:", '"stock:"', '{"stock:": 1}', '["two words"]', "[1]"):
        with pytest.raises(InvalidSettings, match=PREFIXES_FROM):
            prefixes_of({PREFIXES_FROM: wrong})


NO_BODIES: tuple[bytes, ...] = (
    b"",
    b"  ",
    b"{",
    b"null",
    b'[{"change": 1}]',
    b'{"change": NaN}',
    b"[" * 100_000,
)
NO_BODIES += (
    b'{"change": "\xff"}',
    b'{"change": 1, "change": 2}',
    b'{"change": ' + b"1" * 5_000 + b"}",
)
NO_DELTAS: tuple[dict[str, object], ...] = (
    {"note": "x"},
    {"at": 1735724120070},
    {"at": "2025-01-01"},
    {"region": 7},
)
NO_CHANGES: tuple[object, ...] = (
    1.0,
    1.5,
    "1",
    True,
    None,
    [1],
    {},
    10**18 + 1,
    -(10**18) - 1,
    10**38 - 1,
    10**400,
)


def test_a_body_that_is_not_as_described_is_refused() -> None:
    service = web()
    one = {"counter": COUNTER, "change": 1}
    bodies: list[tuple[object, int, str]] = [(body, 400, "malformed-request") for body in NO_BODIES]
    bodies += [(one | more, 422, "invalid-request") for more in NO_DELTAS]
    bodies += [
        ({"counter": COUNTER}, 422, "invalid-request"),
        (b" " * 3_000_000, 413, "body-too-large"),
    ]
    for body, status, name in (*bodies, (json.dumps(one) + " " * 1_048_576, 413, "body-too-large")):
        service.ask("POST", DELTAS, body, {"Idempotency-Key": ULID}).refused(status, name)
    for change in NO_CHANGES:
        (error, *_) = service.add(change).refused(422, "invalid-request")["errors"]
        assert error["at"] == "body/change"
    assert service.items == {}
    good = (
        "application/json",
        "Application/JSON",
        "application/json;charset=UTF-8",
        " application/json ",
    )
    for media_type in (
        *good,
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
    ):
        headers = {"idempotency-key": ULID, "CONTENT-TYPE": media_type}
        answer = web().ask("POST", DELTAS, one, headers)
        assert (answer.status == 201) is (media_type in good)
        if media_type not in good:
            answer.refused(415, "not-json")


def test_an_event_of_api_gateway_may_have_its_body_in_base64() -> None:
    headers = {"Idempotency-Key": ULID, "Content-Type": "application/json; charset=utf-8"}
    service, encoded = web(), event_of("POST", DELTAS, headers, None) | {"isBase64Encoded": True}
    body = base64.b64encode(b'{"counter": "stock:85123A", "change": 1}').decode()
    assert service.send(encoded | {"body": body}).status == 201
    service.send(encoded | {"body": "%"}).refused(400, "malformed-request")


def test_an_unknown_or_double_parameter_is_refused() -> None:
    service, one = web(), {"counter": "a", "change": 1}
    for method, target, body in (
        *(("GET", f"{path}counter=a&", None) for path in ("/counters?", "/history?", "/standing?")),
        ("GET", f"/series?counter=a&since={AT}&every=month&", None),
        *(
            ("POST", "/counters/a/deltas?", one),
            ("POST", "/deltas?", {"deltas": [one | {"idempotency_key": ULID}]}),
        ),
    ):
        for query, name in (
            ("untill=2025-01-01T00:00:00Z", "untill"),
            ("x", "x"),
            ("%78=1", "x"),
            ("y=1&y=1", "y"),
        ):
            answer = service.ask(method, target + query, body, {"Idempotency-Key": ULID})
            assert [error["at"] for error in answer.refused(422, "invalid-request")["errors"]] == [
                f"query/{name}"
            ]
    assert service.items == {}
    ages = [
        f"/counters?counter=a&max_age={age}"
        for age in ("-1", "nan", "inf", "1e10", "soon", "", "1&max_age=2")
    ]
    lists: tuple[str, ...] = (
        "",
        "counter=c&prefix=c",
        "limit=5",
        "prefix=c&max_age=1",
        "prefix=c&consistent=true",
    )
    lists += (
        "counter=c&limit=5",
        "counter=c&after=x",
        "prefix=a b",
        "prefix=%C3%A4",
        "prefix=" + "x" * 257,
    )
    of_list = [
        f"/counters?{query}"
        for query in (*lists, "prefix=&limit=0", "prefix=&limit=1001", "counter=a&counter=b")
    ]
    wrong = (
        "limit=0",
        "limit=1001",
        "limit=x",
        "since=2010-12-01",
        "until=1735724120",
        "counter=b",
    )
    for target in (*ages, *of_list, *(f"/history?counter=a&{query}" for query in wrong)):
        service.ask("GET", target).refused(422, "invalid-request")
    service.ask("GET", "/counters?counter=a&consistent=maybe").refused(422, "invalid-request")


def test_head_has_no_body_and_options_says_the_methods() -> None:
    service = web()
    service.add(5)
    for target in (
        f"/counters?counter={COUNTER}",
        f"/history?counter={COUNTER}",
        "/counters?counter=a b",
        "/x",
    ):
        head, get = service.ask("HEAD", target), service.ask("GET", target)
        assert (head.status, head.headers, head.body) == (get.status, get.headers, "")
        assert get.headers["Cache-Control"] == "no-store"
    gets, posts = "GET, HEAD, OPTIONS", "POST, OPTIONS"
    for path, allow in (
        ("/counters", gets),
        ("/history", gets),
        ("/deltas", posts),
        ("/counters/x/deltas", posts),
    ):
        answer = service.ask("OPTIONS", path, headers={"Origin": "https://shop.example"})
        assert (answer.status, answer.headers["Allow"], answer.body) == (204, allow, "")
        assert not [name for name in answer.headers if name.startswith("Access-Control")], (
            "closed, unless told"
        )
    for method, path, allow in (
        *(
            ("DELETE", "/counters", gets),
            ("POST", "/history", gets),
            ("PUT", "/counters/x/deltas", posts),
        ),
        *(("GET", "/counters/x/deltas", posts), ("GET", "/deltas", posts)),
    ):
        answer = service.ask(method, path)
        answer.refused(405, "method-not-allowed")
        assert answer.headers["Allow"] == allow
    assert service.ask("HEAD", "/deltas").headers["Allow"] == posts
    paths = ("/", "/counter/x", "/counters/", "/counters/x", "/counters/x/history", "/try-it")
    for method, path in itertools.product(("GET", "POST", "OPTIONS"), paths):
        service.ask(method, path, {"counter": "x"}).refused(404, "no-such-route")
    service.ask("POST", "/counters/x/holds//capture", {"counter": "x"}).refused(
        404, "no-such-route"
    )


def test_a_balance_says_all_that_a_read_knows() -> None:
    service = web()
    service.add(-6)
    service.add(10, UUID7, region=B)
    known = {
        "counter": COUNTER,
        "value": 4,
        "count": 2,
        "as_of": "2025-01-01T09:50:00.000Z",
        "pending": 2,
    }
    more = {"by_region": {A: -6, B: 10}, "cached": False, "closed": True}
    assert service.read().said == known | more
    for n, change in enumerate((10**18, 10**18 - 1, 10**18 - 2)):
        assert service.add(change, f"key {n}", "large", at=AT).status == 201
    assert service.read("large").said["value"] == 3 * 10**18 - 3, "exact, beyond a double"
    service = web()
    service.read(query="&max_age=5")
    service.add(1)
    cached = service.read(query="&max_age=5").said
    assert (cached["value"], cached["cached"], service.read().said["value"]) == (0, True, 1)
    service.asked.clear()
    for query in ("", "&consistent=true", "&consistent=false"):
        assert service.read(query=query).status == 200
    strong = [request.consistent for request in service.asked if isinstance(request, GetMany)]
    assert strong == [True, True, False]


def pages(service: Service, target: str, after: str) -> list[Any]:
    """What every page of a list says."""
    answers = [service.ask("GET", target)]
    while (following := answers[-1].said["next"]) is not None:
        answers.append(service.ask("GET", f"{target}&{after}={following}"))
    return [answer.said for answer in answers]


def test_the_history_comes_in_pages_also_while_it_is_compacted() -> None:
    def changes(query: str) -> list[list[int]]:
        said = pages(service, f"/history?counter={COUNTER}&{query}", "cursor")
        return [[entry["change"] for entry in page["entries"]] for page in said]

    service = web()
    for n in range(7):
        service.add(4**n, f"key {n}", at=f"2025-01-01T00:00:0{n}Z")
        if n == 4:
            Compactor(
                service.settings, tables={A: service, B: service}, clock=service.clock
            ).compact(COUNTER)
    assert changes("limit=3") == [[1, 4, 16], [64, 256, 1024], [4096]]
    assert changes("since=2025-01-01T00:00:02Z&until=2025-01-01T00:00:05Z&limit=2") == [
        [16, 64],
        [256],
    ]
    assert changes("since=2025-01-02T00:00:00Z") == [[]]


NAMES = {f"stock:{n}" for n in range(40)} | {"a?b%c", "stock;"}


def with_names() -> Service:
    service = web()
    service.store(directory.item_of(Lane(region, 0, name)) for name in NAMES for region in (A, B))
    return service


def test_every_name_is_listed_once_past_damage() -> None:
    service = with_names()
    damaged = Key("lane#eu-west-1#0", "0#elsewhere")
    service.store([keyed(damaged)])
    for prefix, limit, names in (
        *(("", limit, NAMES) for limit in (1, 7, 1_000)),
        *(
            ("stock:", 9, NAMES - {"a?b%c", "stock;"}),
            ("a%3Fb%25c", 9, {"a?b%c"}),
            ("none", 9, set()),
        ),
    ):
        said = [
            page["counters"]
            for page in pages(service, f"/counters?prefix={prefix}&limit={limit}", "after")
        ]
        assert sorted(name for page in said for name in page) == sorted(names)
        assert max(map(len, said)) <= limit
    service.forget()
    service.ask("GET", "/counters?prefix=&limit=1000")
    assert service.counted("LanesDamaged") == 1
    assert [line for _, _, line in service.lines("error")] == [{"pk": damaged.pk, "sk": damaged.sk}]


def test_a_cursor_of_another_list_is_refused() -> None:
    def spelled(*places: str) -> list[str]:
        return [base64.urlsafe_b64encode(place.encode()).decode().rstrip("=") for place in places]

    service = with_names()
    after = service.ask("GET", "/counters?prefix=stock:&limit=1").said["next"]
    digest = base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)).decode().split(".")[2]
    made_up: tuple[str, ...] = (
        f"1.256.{digest}.",
        f"1.7.{digest}.{'x' * 1_025}",
        "1.7.00000000.stock:1",
        f"2.7.{digest}.a",
    )
    bad = ["", "x", "A" * 16, "A" * 17, "A" * 2_000, *spelled(*made_up)]
    for target in (*(f"stock:&after={each}" for each in bad), f"&after={after}"):
        service.ask("GET", f"/counters?prefix={target}").refused(404, "invalid-cursor")
    for n in range(2):
        service.add(1, f"key {n}", at=AT)
    cursor = service.history(query="&limit=1").said["next"]
    made_up = ("1.x.y.z", f"1.{'Z' * 26}.eu-west-1.5f5704d1")
    for each in ("", "x", "%00", "zz", "A" * 300, "_" * 60, cursor[:-2], *spelled(*made_up)):
        service.history(query=f"&cursor={each}").refused(404, "invalid-cursor")
    service.history("other", f"&cursor={cursor}").refused(404, "invalid-cursor")


FAILURES: list[tuple[Exception, int, str]] = [
    *((errors.Throttled("no"), 429, "throttled"), (errors.Unavailable("no"), 503, "unavailable")),
    *(
        (errors.TransactionConflict("no"), 503, "unavailable"),
        (errors.GaveUp("no"), 503, "unavailable"),
    ),
    *(
        (errors.OutcomeUnknown("no"), 504, "outcome-unknown"),
        (errors.OutOfReach("no"), 503, "out-of-reach"),
    ),
    *(
        (errors.NotAllowed("no"), 500, "misconfigured"),
        (errors.TableMissing("no"), 500, "misconfigured"),
    ),
    *((errors.LimitMismatch("no"), 500, "misconfigured"), (errors.GateLost("no"), 500, "damaged")),
    *(
        (errors.DamagedItem("pk", "sk", "123454321"), 500, "damaged"),
        (RuntimeError("secret"), 500, "internal"),
    ),
    *(
        (errors.ReadTooSlow("no"), 503, "unavailable"),
        (errors.NotYetReplicated("no"), 503, "not-yet-replicated"),
    ),
]
READS = (
    *(
        "/counters?counter=c",
        "/counters?prefix=",
        "/history?counter=c",
        "/standing?counter=seats:gig",
    ),
    *(f"/series?counter=c&every=month&since={AT}", f"/counters?counter=c&at={AT}"),
)
UNSURE = (errors.OutcomeUnknown, errors.GaveUp, errors.OutOfReach, RuntimeError)


def test_a_failure_says_what_to_do_and_logs_no_amount() -> None:
    for error, status, name in FAILURES:
        service = web()
        id = hold(service, 3).said["id"]
        service.fails(error, Put, Update)
        ends = [end(service, id, how) for how in ("capture", "release")]
        of_limits = (limited(service, 1, "a"), hold(service, 1, "b"), *ends)
        for answer in (*of_limits, service.add(123_454_321)):
            said = answer.refused(status, name)
            assert ("Nothing was written" in said["detail"]) == (not isinstance(error, UNSURE))
            assert "secret" not in answer.body
        if name == "outcome-unknown":
            assert ("same idempotency key" in said["detail"], said["region"]) == (True, A)
        if name != "internal":  # of one change of a bulk it is the result
            delta = {"counter": "c", "change": 123_454_320, "idempotency_key": ULID}
            wrong = delta | {"change": "123454321"}
            results = service.ask("POST", "/deltas", {"deltas": [delta, wrong]}).said["results"]
            assert [result["status"] for result in results] == [status, 422]
            assert results[0]["problem"]["type"].endswith(name)
        assert "12345432" not in repr(service.lines())
        service.fails(error, Get, GetMany, Query, Together)
        for target in READS:
            answer = service.ask("GET", target)
            answer.refused(status, name)
            assert "written" not in answer.body


WRONG_READS = (
    *(
        path
        for read in READS
        for path in (f"{read}&no=1", f"{read}&counter=d", read.partition("?")[0])
    ),
    *(
        "/nothing",
        "/deltas",
        "/counters/c/deltas",
        "/standing?counter=c",
        "/counters?counter=c&max_age=-1",
    ),
    *("/history?counter=c&cursor=x", "/history?counter=c&since=x", "/counters?prefix=&after=x"),
)


def test_no_problem_of_a_read_says_that_nothing_was_written() -> None:
    for path in WRONG_READS:
        answer, head = web().ask("GET", path), web().ask("HEAD", path)
        assert (answer.status >= 400, "written" in answer.body, head.body) == (True, False, ""), (
            answer
        )
        assert json.loads(answer.body)["status"] == answer.status == head.status
    assert "Nothing was written" in web().ask("POST", "/counters/c/deltas", {"counter": "c"}).body
