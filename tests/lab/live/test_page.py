"""What the live page says is what the shipped programs read, and only the page itself may change it."""

import json
import threading
from dataclasses import replace
from itertools import islice
from typing import Any

import httpx
import pytest

from lab.live import Controls, Scene, picture
from lab.live.server import FILES, PortTaken, Server, serve
from ledger.lane.add import add

HERE, THERE = REGIONS = "eu-west-1", "us-east-1"


def disturbed(seed: int = 7) -> Scene:
    scene = Scene(seed, Controls(lag_ms=800, duplicates_percent=30, writes_per_s=10))
    for step in range(800):
        if step == 400:
            scene.set({"cut": True})
            scene.crash(HERE)
        scene.step()
    return scene


def at_rest(scene: Scene) -> None:
    scene.come_to_rest()
    while not scene.resting:
        scene.step()


def shown(scene: Scene, region: str = HERE) -> Any:
    return picture(scene)["regions"][REGIONS.index(region)]


def test_a_number_is_judged_by_what_its_region_can_know_and_at_rest_ours_alone_equals_the_truth() -> None:
    scene = disturbed()
    assert all(way["count"] > 45 for way in picture(scene)["cable"])
    assert picture(scene)["verdict"].endswith("crashed right after a write. The crash changed no number.")
    for region in REGIONS:
        ours = scene.readings[region]["ours"]
        assert 0 < (ours.count or 0) <= ours.known_count <= len(scene.knowledge.known(region)) < scene.truth.count
        assert shown(scene, region)["counters"]["ours"]["mood"] in ("exact", "behind")
    scene.set({"cut": False})
    scene.crash(THERE)
    while scene.compactor_is(THERE) == "about to crash":
        scene.step()
        assert not [region for region in REGIONS if scene.readings[region]["ours"].is_wrong]
    _, written, *_ = (row.asked for row in scene.requests.rows if (row.who, row.region) == ("compactor", THERE))
    assert written.startswith(("commit", "put", "delete"))
    at_rest(scene)
    for region in REGIONS:
        value, *naive = (counter["value"] for counter in shown(scene, region)["counters"].values())
        assert value == scene.knowledge.value(region) == scene.truth.value not in naive
    assert picture(scene)["verdict"].startswith("At rest: this library equals the truth in both Regions, atomic ADD is")
    assert all(scene.done[HERE][done] + scene.done[THERE][done] for done in ("folded", "settled", "cleaned"))
    assert scene.problems == []


def test_a_library_that_reads_too_much_is_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(3, Controls(duplicates_percent=0))
    monkeypatch.setattr("lab.live.scripts.add", lambda delta: add(replace(delta, change=delta.change + 1)))
    for _ in range(400):
        scene.step()
    assert shown(scene)["counters"]["ours"]["mood"] == "wrong"
    at_rest(scene)
    assert "this library is wrong for good (+" in picture(scene)["verdict"]


def test_a_scene_follows_from_its_seed_and_a_paused_one_goes_on_by_requests_of_ours() -> None:
    scene = disturbed()
    assert picture(scene) == picture(disturbed()) != picture(disturbed(8))
    before = scene.requests.count
    scene.step_to_next()
    assert scene.requests.count > before


def test_the_page_alone_is_answered_loads_nothing_from_elsewhere_and_a_bad_wish_changes_nothing() -> None:
    with Server(0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        visitor = httpx.Client(base_url=server.url, timeout=60, trust_env=False)
        own, other = {"Origin": server.url.rstrip("/")}, {"Origin": "https://evil.example"}
        for path in FILES:
            assert visitor.get(path).headers["Content-Security-Policy"].startswith("default-src 'none';")
            assert visitor.get(path, headers={"Host": "evil.example"}).status_code == 403
        assert visitor.get("/server.py").status_code == 404
        with visitor.stream("GET", "/pictures") as answer:
            *_, last = (line for line in islice(answer.iter_lines(), 8) if line)
        assert json.loads(last.removeprefix("data: "))["now_ms"] > 0
        assert visitor.post("/do", content='{"rest": true}', headers=other).status_code == 403
        assert visitor.post("/do", content='{"set": {"lag_ms": 700}}', headers=own).status_code == 204
        for wish in ('{"set": {"lag_ms": -1}}', '{"set": {"x": 1}}', '{"crash": 7}', "[]", "{", "x" * 1001):
            assert visitor.post("/do", content=wish, headers=own).status_code == 400
        assert json.loads(next(server.loop.pictures()))["controls"]["lag_ms"] == 700
        server.shutdown()
        with pytest.raises(PortTaken, match="cannot be used"):
            serve(server.server_port)
