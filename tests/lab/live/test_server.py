"""The server of the live page: who may ask for what, what may be set, and how it ends."""

import http.client
import json
import re
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from lab.live.__main__ import main
from lab.live.controls import LIMITS, BadControl, Controls
from lab.live.loop import Loop
from lab.live.server import FILES, PortTaken, Server, serve

app = typer.Typer()
app.command()(main)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(server: Server, method: str, path: str, body: str = "", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.headers)
    finally:
        connection.close()


def done(server: Server, what: object, **headers: str) -> tuple[int, str]:
    """What the server says to the page that asks for this."""
    headers = {"Origin": server.url.rstrip("/"), **headers}
    status, body, _ = asked(server, "POST", "/do", what if isinstance(what, str) else json.dumps(what), **headers)
    return status, json.loads(body)["error"] if body else ""


def picture(server: Server) -> dict[str, Any]:
    pictures = server.loop.pictures()
    found: dict[str, Any] = json.loads(next(pictures))
    pictures.close()
    return found


@pytest.mark.parametrize("path", FILES)
def test_a_file_comes_with_headers_that_let_nothing_else_in(server: Server, path: str) -> None:
    status, body, headers = asked(server, "GET", path)
    assert status == 200
    assert body
    assert headers["Content-Security-Policy"].startswith("default-src 'none';")
    assert b"//" not in body.replace(b"// ", b"").replace(b"http://www.w3.org/2000/svg", b"")


def test_the_page_is_told_what_is_set(server: Server) -> None:
    assert done(server, {"set": {"lag_ms": 700, "cut": True}}) == (204, "")
    assert picture(server)["controls"]["lag_ms"] == 700
    assert picture(server)["controls"]["cut"] is True
    assert done(server, {"rest": True}) == (204, "")
    assert picture(server)["controls"]["cut"] is False
    assert done(server, {"begin": {"story": "counter", "seed": 9}}) == (204, "")
    assert picture(server)["controls"]["lag_ms"] == 400
    assert picture(server)["story"]["seed"] == 9


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"set": {"lag_ms": -1}}, "lag_ms is a whole number from 0 to 5,000, not -1."),
        ({"set": {"lag_ms": 1, "x": 1}}, "There is no control 'x'"),
        ({"crash": "mars-1"}, "There is no Region 'mars-1'"),
        ({"step": True}, "Pause it first"),
        ({"rest": False}, "rest and step take true"),
        ({"explode": True}, "There is set, crash, rest, step, go, tell and begin"),
        ({}, "Ask for one thing"),
        ([], "Ask for one thing"),
        ({"rest": True, "step": True}, "Ask for one thing"),
        ("{", "not JSON"),
        ("[" * 900, "not JSON"),
        ("x" * 1_001, "at most 1,000 bytes"),
    ],
)
def test_a_bad_request_is_answered_with_a_sentence_and_changes_nothing(server: Server, what: object, says: str) -> None:
    before = picture(server)["controls"]
    status, said = done(server, what)
    assert status == 400
    assert says in said
    assert picture(server)["controls"] == before


def test_a_paused_scene_stands_still_and_goes_on_by_steps(server: Server) -> None:
    assert done(server, {"set": {"paused": True}}) == (204, "")
    paused_at_ms = picture(server)["now_ms"]
    pictures = server.loop.pictures()
    assert {json.loads(each)["now_ms"] for each in islice(pictures, 3)} == {paused_at_ms}
    pictures.close()
    assert done(server, {"step": True}) == (204, "")
    assert picture(server)["now_ms"] > paused_at_ms
    assert done(server, {"set": {"paused": False}}) == (204, "")


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", "http://evil.example:80"])
def test_another_page_may_not_ask_for_anything(server: Server, origin: str) -> None:
    assert done(server, {"rest": True}, Origin=origin) == (403, "Only the page itself may ask for this.")


def test_only_its_files_its_address_and_its_own_name_are_answered(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    for path in ("/../server.py", "/page.js?x", "/favicon.ico"):
        assert asked(server, "GET", path)[0] == 404
    assert asked(server, "GET", "/?story=sale&seed=3")[1] == asked(server, "GET", "/")[1]
    for path in ("/", "/?story=sale", "/pictures", "/page.js"):
        status, body, _ = asked(server, "GET", path, Host="evil.example")
        assert status == 403
        assert server.url in json.loads(body)["error"]
    assert done(server, {"rest": True}, Host="evil.example")[0] == 403


def test_pictures_are_streamed_while_time_passes(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request("GET", "/pictures")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    lines = [line for line in islice(answer, 8) if line.startswith(b"data: ")]
    times = [json.loads(line.removeprefix(b"data: "))["now_ms"] for line in lines]
    assert times == sorted(times)
    assert times[-1] > times[0]
    connection.close()


def test_no_time_passes_while_nobody_watches() -> None:
    loop = Loop()
    loop.start()
    loop.end()
    assert loop.now_ms == 0


def test_a_second_demo_on_a_port_is_told_where_the_first_one_is_and_how_to_have_both(server: Server) -> None:
    says = f"Port {server.server_port} is in use. If a demo runs there, it is at {server.url};"
    with pytest.raises(PortTaken, match=re.escape(says)):
        serve(server.server_port)
    result = CliRunner().invoke(app, ["--port", str(server.server_port)])
    assert result.exit_code == 2
    assert f"make demo-web PORT={server.server_port + 1}" in result.output


def test_a_story_that_does_not_exist_is_said_before_anything_is_served() -> None:
    result = CliRunner().invoke(app, ["--port", "0", "--story", "war"])
    assert result.exit_code == 2
    assert result.output == "There is no story 'war'; there are counter and sale.\n"


def test_ctrl_c_ends_it_calmly() -> None:
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            raise KeyboardInterrupt

    serve(0, say=say)
    assert said[-1].strip() == "Ended."


def test_what_is_given_is_set_and_the_rest_stays() -> None:
    assert Controls(lag_ms=7).with_({"cut": True, "writes_per_s": 0}) == Controls(lag_ms=7, cut=True, writes_per_s=0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Give an object"),
        (None, "Give an object"),
        ([["lag_ms", 1]], "Give an object"),
        ({"speed": 1}, "There is no control 'speed'"),
        ({"lag_ms": -1}, "from 0 to 5,000, not -1"),
        ({"lag_ms": 5_001}, "from 0 to 5,000, not 5001"),
        ({"lag_ms": 1.5}, "a whole number"),
        ({"lag_ms": True}, "a whole number"),
        ({"lag_ms": "9"}, "a whole number"),
        ({"lag_ms": float("nan")}, "a whole number"),
        ({"cut": 1}, "true or false"),
        ({"lag_ms": 5, "cut": "no"}, "true or false"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(given: object, says: str) -> None:
    with pytest.raises(BadControl, match=says):
        Controls().with_(given)


JSON: st.SearchStrategy[object] = st.one_of(
    st.none(), st.booleans(), st.integers(-10, 10_000), st.floats(), st.text(max_size=3), st.just([1]), st.just({})
)


@given(st.dictionaries(st.sampled_from([*LIMITS, "cut", "paused", "x"]), JSON, max_size=3) | JSON)
def test_whatever_is_sent_is_taken_within_its_limits_or_refused(given: object) -> None:
    try:
        controls = Controls().with_(given)
    except BadControl:
        return
    for name, (least, most) in LIMITS.items():
        assert least <= getattr(controls, name) <= most
        assert type(getattr(controls, name)) is int
    assert type(controls.cut) is type(controls.paused) is bool
