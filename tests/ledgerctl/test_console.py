"""The console: whom it answers, what its views answer and take, and how the command ends. What a
visitor sees is in tests/browser/test_console.py.
"""

import io
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import ThreadingHTTPServer
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest

from compactor import Compactor
from ledger.core.checks import to_datetime
from ledger.core.errors import ReadTooLarge
from ledger.core.loopback import HOST, authorities
from ledger.core.requests import (
    At,
    Delete,
    Get,
    GetMany,
    Key,
    Now,
    Page,
    Pause,
    PutMany,
    Query,
    Scan,
    Together,
)
from ledger.tables.memory import MemoryTable
from ledgerctl.call import Call
from ledgerctl.console.capped import PAGE_UNITS, Capped, Purse
from ledgerctl.console.server import Server
from ledgerctl.surroundings import Surroundings
from reader.bounded import units_of
from service.api.app import Api
from service.observe import Watch
from tests.ledgerctl.support import NOW_MS, A, B, Tables, aws, ctl, limited, refusal, refused
from tests.service.test_loopback import entered, strangers

NOW = to_datetime(NOW_MS)
NO_OPTIONS = dict.fromkeys(("table", "region", "regions", "endpoint_url", "profile")) | {
    "json": False
}
PERIODS = '{"llm:": {"late_s": 3600, "keep_s": 34560000}}'


def shop() -> Tables:
    """Counters of each kind: plain and folded, with a limit and a hold, of a period."""
    tables = limited(A, B)
    tables.environ["LEDGER_PERIODS"] = PERIODS
    tables.table.peers = {B: tables.table}
    ledger = tables.ledger
    for n in range(40):
        at = NOW - timedelta(days=40 - n)
        ledger.add("views", n, idempotency_key=f"{n}", at=at)
    ledger.add("views", 10**18, idempotency_key="big", at=NOW - timedelta(days=60))
    Compactor(tables.settings(), tables=dict.fromkeys((A, B), tables.table)).run()
    ledger.add("seats:gig", 7)
    ledger.hold("seats:gig", 2, expires=timedelta(hours=1))
    ledger.add("llm:key@2027-01", 3)
    return tables


def server_of(tables: Tables, units: int = 4_096) -> Server:
    return Server(Call(tables.world, NO_OPTIONS), 0, units)


def view(server: Server, path: str, **asked: str) -> Any:
    status, said, _ = server.view(f"/{path}", urlencode(asked))
    assert status == 200, said
    return said


@contextmanager
def shown(tables: Tables, units: int = 4_096) -> Iterator[Server]:
    with server_of(tables, units) as server:
        yield server


def test_only_who_has_the_token_and_no_foreign_page_is_answered() -> None:
    made: list[Server] = []

    def console() -> ThreadingHTTPServer:
        made.append(server_of(shop()))
        return made[-1]

    with entered(console) as (port, ask):
        path = f"/{made[0].token}/counters?counter=views"
        for stranger in strangers(port):
            status, said = ask("GET", path, None, stranger)
            assert (status, b"value" in said) == (403, False), stranger
        for own in sorted(authorities(port)):
            host = [("Host", own)]
            assert ask("GET", path, None, host)[0] == 200
            assert ask("POST", path, b"{}", host)[0] == 501
            for other in ("/counters?counter=views", "/", "", f"/x{path}", path[:-30]):
                status, said = ask("GET", other, None, host)
                assert (status, b"value" in said) == (403, False), other
        host = [("Host", f"{HOST}:{port}")]
        page = ask("GET", f"/{made[0].token}/", None, host)[1].decode()
        assert "<b>counters</b>" in page
        assert "4,096 read units" in page
        for file in ("page.js", "page.css", "uPlot.iife.min.js", "uPlot.min.css", "icon.svg"):
            assert f'"{file}"' in page
            assert ask("GET", f"/{made[0].token}/{file}", None, host)[0] == 200
        for no_file in ("../views.py", "./", "..", "/evil.example/..", "%00", "page.js/", "x"):
            for method in ("GET", "HEAD"):
                assert ask(method, f"/{made[0].token}/{no_file}", None, host)[0] == 404, no_file


SAME = {
    "/counters": {"counter": "views"},
    "/standing": {"counter": "seats:gig"},
    "/series": {
        "counter": "views",
        "since": "2027-01-01T00:00:00Z",
        "every": "week",
        "zone": "Europe/Paris",
    },
}


def test_a_view_answers_what_the_http_api_answers() -> None:
    tables = shop()
    api = Api(
        tables.settings(), Watch.here("api", io.StringIO()), table=tables.table, clock=tables.clock
    )
    with shown(tables) as server:
        for path, asked in SAME.items():
            event = {
                "rawPath": path,
                "rawQueryString": urlencode(asked),
                "headers": {},
                "requestContext": {"http": {"method": "GET", "path": path}, "stage": "$default"},
            }
            answer = api(event)
            assert answer["statusCode"] == 200, answer
            ours = json.loads(json.dumps(view(server, path[1:], **asked)))
            theirs = json.loads(answer["body"])
            assert {name: ours[name] for name in theirs} == theirs


def test_views_show_names_changes_holds_periods_and_lanes() -> None:
    tables = shop()
    with shown(tables) as server:
        found = view(server, "counters", prefix="views")
        assert [(row["counter"], row["count"]) for row in found["values"]] == [("views", 41)]
        names = view(server, "counters")["counters"]
        assert sorted(names) == ["llm:key@2027-01", "seats:gig", "views"]
        last = view(server, "changes", counter="views", count="41")["entries"]
        assert [each["change"] for each in last] == [*range(39, 19, -1)]
        few = view(server, "changes", counter="seats:gig", count="1")["entries"]
        assert [each["change"] for each in few] == [7]
        (held,) = view(server, "holds", counter="seats:gig")["holds"]
        assert (held["amount"], held["over"]) == (2, False)
        asked = {"every": "month", "zone": "UTC", "anchor": "1"}
        periods = view(server, "periods", counter="llm:key", **asked)["periods"]
        assert (periods[-1]["counter"], periods[-1]["value"]) == ("llm:key@2027-01", 3)
        said = view(server, "counters", counter="llm:key@2027-01")
        assert (said["base"], said["every"], said["limited"]) == ("llm:key", "month", False)
        window = "llm:key@2027-01-15T05+5h"
        tables.ledger.add(window, 4, idempotency_key="w", at=NOW)
        said = view(server, "counters", counter=window)
        asked = {name: f"{said[name]}" for name in ("every", "anchor", "begins")}
        rows = view(server, "periods", counter="llm:key", zone="UTC", **asked)["periods"]
        assert [(row["counter"][-8:], row["value"]) for row in rows[-2:]] == [
            ("15T00+5h", 0),
            ("15T05+5h", 4),
        ]
        lanes = view(server, "lag", counter="views")["lanes"]
        assert sorted((row["tail"], row["to_do"]) for row in lanes) == [(0, []), (41, ["fold"])]
        assert view(server, "lag", counter="seats:gig") == {"lanes": []}


def test_one_counter_that_cannot_be_read_hides_no_other() -> None:
    tables = Tables(table=MemoryTable())
    tables.ledger.add("good", 1)
    tables.ledger.add("bad", 1)
    key = next(key for key in tables.held if key.pk.endswith("#bad"))
    tables.held[key] = {**tables.held[key], "change": {"S": "damaged"}}
    with shown(tables) as server:
        rows = {row["counter"]: row for row in view(server, "counters")["values"]}
        assert (rows["good"]["value"], "damaged" in rows["bad"]["error"]) == (1, True)


def test_a_view_that_cannot_be_says_why() -> None:
    with shown(shop()) as server:
        for path, asked, why in (
            ("/counters", "counter=a%20b", "InvalidCounter"),
            ("/standing", "counter=views", "InvalidInput"),
            ("/series", "counter=views", "InvalidTime"),
            ("/periods", "counter=views", "InvalidInput"),
            ("/periods", "counter=llm:key&every=month&anchor=x", "InvalidInput"),
            ("/periods", "counter=llm:key&every=5h&begins=x", "InvalidInput"),
            ("/changes", "counter=views&count=x", "InvalidInput"),
        ):
            status, said, cost = server.view(path, asked)
            assert (status, said["title"]) == (400, why)
            assert cost
        tables = shop()
        tables.table.down = True
        with shown(tables) as down:
            assert down.view("/counters", "counter=views")[0] == 503


def test_no_view_writes() -> None:
    tables = shop()
    before = len(tables.table.asked)
    with shown(tables) as server:
        for path, asked in SAME.items():
            view(server, path[1:], **asked)
        for path in ("counters", "changes", "holds", "lag"):
            view(server, path, counter="seats:gig", prefix="")
    reads = (At, Get, GetMany, Query, Together, Now, Pause)
    assert [each for each in tables.table.asked[before:] if not isinstance(each, reads)] == []
    for write in (Delete(Key("a", "b")), PutMany(()), Scan(), At(B, Delete(Key("a", "b")))):
        with pytest.raises(TypeError, match="only reads"):
            Capped(tables.table, Purse(4_096)).answer(write)


class Vast:
    """Each page has up to a megabyte, and another one follows; each item may have 400 KB."""

    def __init__(self, seed: int) -> None:
        self._random, self.units = Random(seed), 0.0

    def answer(self, request: Any) -> Any:
        answer = self._answer(request)
        self.units += units_of(request, answer)
        return answer

    def _answer(self, request: Any) -> Any:
        match request:
            case At(_, inner):
                return self._answer(inner)
            case Together(requests):
                return tuple(map(self._answer, requests))
            case GetMany(keys):
                return tuple(self._item(400 * 1024) for _ in keys)
            case Query():
                return Page((self._item(1 << 20),), "more")
        return self._item(400 * 1024)

    def _item(self, most: int) -> Any:
        size = most if self._random.random() < 0.5 else self._random.randrange(1, most)
        return {"b": {"B": bytes(size - 1)}}


@pytest.mark.parametrize("seed", range(20))
def test_no_view_takes_more_than_was_said(seed: int) -> None:
    random = Random(seed)
    most = random.choice([PAGE_UNITS, 300, 1_000])
    vast = Vast(seed)
    capped = Capped(vast, Purse(most))
    queries = tuple(Query(f"{n}", consistent=random.random() < 0.5) for n in range(5))
    keys = tuple(Key(f"{n}", "a") for n in range(7))

    def ask_for_ever() -> None:
        while True:
            request: Any = random.choice(
                [Together(queries), GetMany(keys), Get(keys[0]), queries[0]]
            )
            answer = capped.answer(random.choice([request, At(B, request)]))
            if isinstance(request, Together | GetMany):
                assert len(answer) == len(request[0])

    with pytest.raises(ReadTooLarge, match=f"more than {most:,} read units"):
        ask_for_ever()
    assert 0 < vast.units <= most


def test_many_lanes_are_read_in_parts_that_fit() -> None:
    """Of 64 lanes each page could have a megabyte: four times what a view may take."""
    tables = Tables(table=MemoryTable())
    tables.environ["LEDGER_SHARDS"] = '{"c": 64}'
    for n in range(200):
        tables.ledger.add("c", 1, idempotency_key=f"{n}", at=NOW)
    with shown(tables) as server:
        assert view(server, "counters", counter="c")["value"] == 200


def test_the_command_prints_the_address_opens_it_and_ends_well() -> None:
    opened: list[str] = []

    def look(url: str) -> None:
        opened.append(url)
        raise KeyboardInterrupt

    world = shop().world
    outside = Surroundings(
        environ=world.environ, tables=world.tables, clock=world.clock, open_page=look
    )
    said = ctl(outside, "console", "--port", "0")
    assert (said.code, said.out) == (0, f"{opened[0]} (Ctrl-C ends it)\n")
    assert opened[0].startswith(f"http://{HOST}:")
    said = ctl(outside, "console", "--port", "0", "--json")
    assert said.documents == [{"url": opened[1]}]


def test_a_console_that_cannot_be_says_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = f"{taken.getsockname()[1]}"
        refused(
            ctl(shop().world, "console", "--port", port), 2, f"port {port}: Address", "--port 0"
        )
    refused(ctl(shop().world, "console", "--host", "0.0.0.0"), 2, "alone", "ssh -L 8091")
    missing = aws(lambda *_: refusal("ResourceNotFoundException"))
    refused(ctl(missing, "console"), 2, "There is no table counters", "ledgerctl init")
    refused(ctl(aws(lambda *_: (200, {}), {"AWS_REGION": A}), "console"), 2, "No table is named")
    assert ctl(shop().world, "console", "--units", "1023").code == 2
    assert ctl(shop().world, "console", "--port", "65536").code == 2
