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
PARTS = st.sampled_from(["a", "b", "?", "%3F", "%2F", "%25", "/", "..", ".", "#", "/deltas", "/history"])
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


def asked(client: Client, method: str, path: str, query: str = "", body: bytes | None = None) -> Answer:
    """The request, with this path in its event."""
    event = event_of(method, "/" + query, {"Idempotency-Key": ULID}, body)
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    return client.send(event)


def lanes(client: Client) -> set[str]:
    found = (items.lane_of(pk) for pk, _ in client.table.items)
    return {lane.counter for _, lane in filter(None, found)}


@pytest.mark.parametrize("gateway", GATEWAYS.values(), ids=list(GATEWAYS))
@given(name=NAMES)
@example("a/deltas?x")
@example("j?*?")
@example("a%41")
@example("a%3Fb")
@example("a/history?")
@example("..")
@effort(0.2)
def test_a_name_in_a_path_is_the_one_asked_for_or_is_refused(gateway: Callable[[str], str], name: str) -> None:
    path = f"/counters/{quote(name, safe='')}"
    again = f"?counter={quote(name, safe='')}"
    body = json.dumps({"change": 1, "counter": name}).encode()
    for query, said in (("", b'{"change": 1}'), (again, body), ("", body)):
        client = Client()
        answer = asked(client, "POST", gateway(path + "/deltas"), query, said)
        assert (answer.status == 201) == (lanes(client) == {name}), answer
        assert answer.status == 201 or (400 <= answer.status < 500 and not client.table.items), answer
    for query in ("", again):
        for suffix, field in (("", "value"), ("/history", "entries")):
            read = asked(Client(), "GET", gateway(path + suffix), query)
            assert (read.said["counter"] == name and field in read.said) if read.status == 200 else read.problem, read


@pytest.mark.parametrize("name", ["stock:85123A", "a/b", "a#b", "a,b;c=d&e+f", '"<>[\\]^`{|}~', "x" * 256])
def test_an_ordinary_name_in_a_path_is_taken_behind_an_http_api(name: str) -> None:
    client = Client()
    assert client.add(5, counter=name).said["counter"] == name
    path, again = f"/counters/{quote(name, safe='')}", f"?counter={quote(name, safe='')}"
    assert asked(client, "GET", api_gateway(path), again).said["value"] == 5
    assert len(asked(client, "GET", api_gateway(path + "/history"), again).said["entries"]) == 1
