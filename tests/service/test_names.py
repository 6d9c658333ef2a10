"""Whatever a gateway makes of a path: a request concerns the counter that was asked for, or it is refused."""

import json
import posixpath
import re
from collections.abc import Callable
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import items
from service.api.local import event_of
from tests.service.http_client import ULID, Answer, Client
from tests.strategies import effort

ALPHABET = "ab?%/#.;+,&=:*25Ff"
PARTS = st.sampled_from(["a", "b", "?", "%3F", "%2F", "%25", "/", "..", ".", "#", "/deltas", "/holds"])
JOINED = st.lists(PARTS, min_size=1).map("".join).filter(lambda name: len(name) < 60)
NAMES = st.one_of(st.text(ALPHABET, min_size=1, max_size=9), JOINED)


def api_gateway(path: str) -> str:
    """What an HTTP API was seen to do: decode, cut at the first `?`, decode again."""
    return unquote(unquote(path).partition("?")[0])


GATEWAYS: dict[str, Callable[[str], str]] = {
    "as it is": lambda path: path,
    "decoded": unquote,
    "decoded twice": lambda path: unquote(unquote(path)),
    "decoded and cut": lambda path: unquote(path).partition("?")[0],
    "an HTTP API": api_gateway,
    "cut at a hash": lambda path: unquote(path).partition("#")[0],
    "cut at a semicolon": lambda path: unquote(path).partition(";")[0],
    "dots resolved": lambda path: posixpath.normpath(unquote(path)),
    "slashes merged": lambda path: re.sub("/+", "/", unquote(path)),
    "last slash taken": lambda path: unquote(path).rstrip("/"),
    "all but slashes decoded": lambda path: "%2F".join(unquote(part) for part in re.split("%2F", path)),
    "in small letters": lambda path: unquote(path).lower(),
}


def add(client: Client, path: str, body: object) -> Answer:
    """The request of one change, with this path in its event."""
    event = event_of("POST", "/", {"Idempotency-Key": ULID}, json.dumps(body).encode())
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    return client.send(event)


@pytest.mark.parametrize("gateway", GATEWAYS.values(), ids=list(GATEWAYS))
@given(name=NAMES)
@example("a/deltas?x")
@example("j?*?")
@example("a%41")
@example("a%3Fb")
@example("..")
@effort(0.2)
def test_a_name_in_a_path_is_the_one_asked_for_or_is_refused(gateway: Callable[[str], str], name: str) -> None:
    path = gateway(f"/counters/{quote(name, safe='')}/deltas")
    for body in ({"change": 1}, {"change": 1, "counter": name}):
        client = Client()
        answer = add(client, path, body)
        written = {lane.counter for _, lane in filter(None, (items.lane_of(pk) for pk, _ in client.table.items))}
        assert (answer.status == 201) == (written == {name}), answer
        assert answer.status == 201 or (400 <= answer.status < 500 and not client.table.items), answer


def test_an_ordinary_name_in_a_path_is_taken_behind_an_http_api_and_every_name_in_a_body_or_a_query() -> None:
    ordinary = ("stock:85123A", "a/b", "a#b", "a,b;c=d&e+f", '"<>[\\]^`{|}~', "x" * 256)
    for name in (*ordinary, "a%2Fb", "a/history", "x?y", "/", "a/../b", "100%"):
        client = Client()
        change = {"counter": name, "change": 5}
        if name in ordinary:
            path = api_gateway(f"/counters/{quote(name, safe='')}/deltas")
            assert add(client, path, change).said["counter"] == name
        bulk = {"deltas": [change | {"idempotency_key": ULID}]}
        assert client.ask("POST", "/deltas", bulk).said["results"][0]["added"]["counter"] == name
        assert client.read(name).said["value"] == 5
        assert len(client.history(name).said["entries"]) == 1
