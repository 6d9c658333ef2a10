"""The small pure pieces: plans, records, messages, streams, PartiQL, Maven's answer."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lab.engines import maven, wire
from lab.engines.numbered import Renumbered
from lab.torture.checker import Violation
from lab.torture.explain import explain
from lab.torture.plan import DELTAS_OF_COUNTER, KEEP_MS, ON_TIME_MS, REGIONS, Plan
from lab.torture.record import Recorder, lines_of, merged
from lab.torture.writes import Asked


@pytest.mark.parametrize("seed", range(50))
def test_every_plan_has_settings_that_hold_together(seed: int) -> None:
    plan = Plan.draw(seed, 1_000, "nowhere").with_proxy(1)
    for region in REGIONS:
        settings = plan.settings(region, "outside")
        assert settings.endpoint_url == "http://127.0.0.1:1/outside"
        assert settings.keep_ms == KEEP_MS > settings.read_time_max_ms


def test_on_time_allows_for_the_clocks_of_the_compactors() -> None:
    assert 0 < ON_TIME_MS < Plan.draw(1, 1, "").settings("eu-west-1", "x", "http://x").allowed_lateness_ms


def test_a_plans_clock_is_the_monotonic_one() -> None:
    plan = Plan.draw(1, 1, "")
    wall_ms = plan.clock()()
    assert abs(plan.monotonic_ns(wall_ms) + plan.wall_ns - wall_ms * 1_000_000) == 0
    assert plan.clock(100)() - plan.clock()() in range(90, 101)


def test_the_largest_change_of_a_counter_is_one_that_the_ledger_takes() -> None:
    assert Asked(1, DELTAS_OF_COUNTER - 1, "eu-west-1", 0).change.change < 10**18


def test_a_line_torn_by_a_kill_is_left_out(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.jsonl") as recorder:
        recorder.write("w", "invoke", "add", [1])
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"process": "w"')
    assert [line["value"] for line in lines_of(tmp_path / "a.jsonl")] == [[1]]
    assert lines_of(tmp_path / "missing.jsonl") == []


def test_histories_are_merged_in_the_order_of_time(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.jsonl") as a, Recorder(tmp_path / "b.jsonl") as b:
        for n, recorder in enumerate((a, b, a, b)):
            recorder.write("w", "ok", "read", n)
    assert [line["value"] for line in merged(tmp_path.glob("*.jsonl"))] == [0, 1, 2, 3]


def message(data: bytes) -> wire.Message:
    async def read() -> wire.Message:
        stream = asyncio.StreamReader()
        stream.feed_data(data)
        stream.feed_eof()
        return await wire.read(stream)

    return asyncio.run(read())


def test_a_request_is_spelled_as_it_was_read_but_for_its_path() -> None:
    request = message(b"POST /here HTTP/1.1\r\nX-A: b: c\r\nContent-Length: 3\r\n\r\nabc")
    assert (request.path, request.headers["x-a"], request.body) == ("/here", "b: c", b"abc")
    spelled = request.to("/").spelled()
    assert spelled.startswith(b"POST / HTTP/1.1\r\nx-a: b: c\r\ncontent-length: 3\r\n")
    assert spelled.endswith(b"\r\n\r\nabc")


def test_an_answer_in_chunks_is_read_whole() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n"
    answer = message(chunked)
    assert (answer.status, answer.body) == (200, b"abcde")
    assert b"transfer-encoding" not in answer.spelled()


def test_a_connection_that_ends_is_told() -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        message(b"")


def test_records_of_all_regions_are_numbered_in_the_order_in_which_they_are_seen() -> None:
    class Streams:
        def get_records(self, **_: Any) -> Any:
            return {"Records": [{"dynamodb": {"SequenceNumber": "1"}}, {"dynamodb": {"SequenceNumber": "2"}}]}

    numbers = count(1)
    seen = [Renumbered(Streams(), numbers).get_records(ShardIterator="i") for _ in range(2)]
    assert [each["dynamodb"]["SequenceNumber"] for page in seen for each in page["Records"]] == [
        f"{n:010d}" for n in (1, 2, 3, 4)
    ]


def test_without_java_or_maven_dynamodb_local_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LEDGER_DYNAMODB_LOCAL", str(tmp_path / "none"))
    assert not maven.can_be_had()
    assert maven.installed() is None
    with pytest.raises(maven.LocalMissing, match=r"JDK.*java, mvn"):
        maven.install()


def test_a_violation_is_told_with_the_history_of_its_counter() -> None:
    lines = [
        {
            "process": "w",
            "type": "invoke",
            "f": "add",
            "time": 1,
            "region": "r",
            "value": [[3, 0, "r", 9], [4, 0, "r", 9]],
        },
        {"process": "w", "type": "ok", "f": "add", "time": 2, "region": "r", "value": [[3, 0, "ok"]]},
        {"process": "e", "type": "invoke", "f": "read", "time": 3, "region": "r", "value": [4]},
        {"process": "e", "type": "ok", "f": "read", "time": 4, "region": "r", "value": [[4, 0, 0, {}]]},
    ]
    told = explain([Violation(3, "it is wrong"), Violation(None, "so is that")], lines)
    assert told.splitlines() == [
        "counter-3: it is wrong",
        "  0.000 s  w: invoke add in r counter-3 delta 0 of r at 9 ms",
        "  0.000 s  w: ok add in r counter-3 delta 0 ok",
        "",
        "so is that",
    ]
