"""Whatever a gateway makes of a path, and by whatever way a change comes in: it is the one that
was asked for.
"""

import json
import posixpath
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

from hypothesis import example, given
from hypothesis import strategies as st

from ledger import Change, Ledger
from ledger.client.message import dumps
from ledger.core import items
from service.api.local import event_of
from tests.service.support import ULID, ULID_AT, Answer, Service
from tests.service.test_api import OTHERS, UUID7
from tests.service.test_holds import web
from tests.strategies import effort
from tests.world import COUNTER, A

PARTS = st.sampled_from(
    ["a", "b", "?", "%3F", "%2F", "%25", "/", "..", ".", "#", "/deltas", "/holds"]
)
JOINED = st.lists(PARTS, min_size=1).map("".join).filter(lambda name: len(name) < 60)
NAMES = st.one_of(st.text("ab?%/#.;+,&=:*25Ff", min_size=1, max_size=9), JOINED)


def api_gateway(path: str) -> str:
    """What an HTTP API was seen to do: decode, cut at the first `?`, decode again."""
    return unquote(unquote(path).partition("?")[0])


GATEWAYS: list[Callable[[str], str]] = [
    *(lambda path: path, unquote, lambda path: unquote(unquote(path)), api_gateway),
    *(lambda path, cut=cut: unquote(path).partition(cut)[0] for cut in "?#;"),
    lambda path: posixpath.normpath(unquote(path)),
    lambda path: re.sub("/+", "/", unquote(path)),
    lambda path: unquote(path).rstrip("/"),
    lambda path: "%2F".join(unquote(part) for part in re.split("%2F", path)),
    lambda path: unquote(path).lower(),
]


def add(service: Service, path: str, body: object) -> Answer:
    """The request of one change, with this path in its event."""
    event = event_of(
        "POST",
        "/",
        {"Idempotency-Key": ULID, "Content-Type": "application/json"},
        json.dumps(body).encode(),
    )
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    return service.send(event)


@given(name=NAMES)
@example("a/deltas?x")
@example("j?*?")
@example("a%41")
@example("a%3Fb")
@example("..")
@effort(0.2)
def test_a_name_in_a_path_is_the_one_asked_for_or_is_refused(name: str) -> None:
    service = web()
    for gateway in GATEWAYS:
        path = gateway(f"/counters/{quote(name, safe='')}/deltas")
        for body in ({"change": 1}, {"change": 1, "counter": name}):
            service.drop(*service.items)
            answer = add(service, path, body)
            written = {
                lane.counter
                for _, lane in filter(None, (items.lane_of(key.pk) for key in service.items))
            }
            assert (answer.status == 201) == (written == {name}), answer
            assert answer.status == 201 or (400 <= answer.status < 500 and not service.items), (
                answer
            )


def test_an_ordinary_name_is_taken_in_a_path_and_any_in_a_body() -> None:
    ordinary = ("stock:85123A", "a/b", "a#b", "a,b;c=d&e+f", '"<>[\\]^`{|}~', "x" * 256)
    for name in (*ordinary, "a%2Fb", "a/history", "x?y", "/", "a/../b", "100%"):
        service, change = web(), {"counter": name, "change": 5}
        if name in ordinary:
            path = api_gateway(f"/counters/{quote(name, safe='')}/deltas")
            assert add(service, path, change).said["counter"] == name
        bulk = {"deltas": [change | {"idempotency_key": ULID}]}
        assert service.ask("POST", "/deltas", bulk).said["results"][0]["added"]["counter"] == name
        assert service.read(name).said["value"] == 5
        assert len(service.history(name).said["entries"]) == 1
    service = web()
    for in_path in ("b%C3%BC", "a%20b", "a%2525b", "", "%00", "x" * 257):
        answer = service.ask("POST", f"/counters/{in_path}/deltas", {"counter": "a", "change": 1})
        answer.refused(404, "invalid-counter")
    answer = service.ask(
        "POST", "/counters/b/deltas", {"counter": "a", "change": 1}, {"Idempotency-Key": ULID}
    )
    answer.refused(404, "other-counter")


def test_a_key_counts_as_given_by_every_way_and_its_change_once() -> None:
    change, at = 10, datetime.fromisoformat(ULID_AT)
    delta = {"counter": COUNTER, "change": change, "at": ULID_AT}
    service = web().start(pack=True)
    ledger = Ledger(service.settings, tables=service.tables, clock=service.clock)
    ways: list[Callable[[str], Any]] = [
        lambda key: ledger.add(COUNTER, change, idempotency_key=key, at=at),
        lambda key: service.adds(dumps(Change(COUNTER, change, key, at))),
        lambda key: service.add(change, key, at=ULID_AT),
        lambda key: service.add(change, f'"{key}"', at=ULID_AT),
        lambda key: service.ask("POST", "/deltas", {"deltas": [delta | {"idempotency_key": key}]}),
    ]
    spellings = [ULID, UUID7, *OTHERS, "536365/1"]
    for number, spelling in enumerate(spellings, start=1):
        for way in ways:
            way(spelling)
            assert service.value() == change * number
    assert len([key for key in service.items if key.pk == f"delta#{A}#0#{COUNTER}"]) == len(
        spellings
    )
