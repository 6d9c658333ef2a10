"""Settings that contradict each other are never made; the environment is read in one place."""

import os
import pickle
from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import tokens
from ledger.errors import InvalidCounter, InvalidSettings, shown
from ledger.limit import Limit, Threshold
from ledger.settings import FOLD_MAX_LIMIT, SHARDS_MAX, Settings
from ledger.values import Lane


def settings(**changed: Any) -> Settings:
    return Settings(**{"table": "counters", "region": "eu-west-1", **changed})


def test_the_defaults_are_those_of_the_design() -> None:
    made = settings()
    assert (made.regions, made.endpoint_url, made.shards) == (("eu-west-1",), None, {})
    assert (made.allowed_lateness_ms, made.keep_ms, made.read_time_max_ms) == (10_000, 600_000, 60_000)
    assert (made.fold_min, made.fold_max, made.clean) == (32, 8_000, True)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        *(({"table": table}, ["table"]) for table in ("", "a", "a b c", 12345)),
        *(({"region": region}, ["region"]) for region in ("", 5, None, "EU")),
        ({"region": "ap-south-1", "regions": ("eu-west-1", "us-east-1")}, ["region='ap-south-1'", "regions="]),
        ({"regions": ("eu-west-1", "eu-west-1")}, ["regions", "twice"]),
        *(({"regions": regions}, ["regions"]) for regions in (("eu-west-1", "us east"), "eu-west-1", None)),
        *(({"endpoint_url": url}, ["endpoint_url"]) for url in ("localhost:8000", 8000)),
        *(({name: given}, [name]) for name in ("clean", "insert_only", "unshared_limits") for given in ("false", None)),
        *(({"allowed_lateness_ms": ms}, ["allowed_lateness_ms"]) for ms in (-1, 1.5, True)),
        *(({"keep_ms": ms}, ["keep_ms"]) for ms in (0, "600000")),
        *(({name: 0}, [name]) for name in ("read_time_max_ms", "fold_min", "fold_max")),
        ({"keep_ms": 60_000}, ["keep_ms=60000", "read_time_max_ms=60000: else a delta could be deleted", "needs it."]),
        ({"read_time_max_ms": 600_000}, ["keep_ms=600000", "read_time_max_ms=600000"]),
        ({"fold_min": 9_000}, ["fold_min=9000", "fold_max=8000"]),
        ({"fold_max": FOLD_MAX_LIMIT + 1}, [f"fold_max={FOLD_MAX_LIMIT + 1}"]),
        ({"shards": {"stock:": 0}}, ["shards['stock:']=0"]),
        *(({"shards": {"stock:": shards}}, ["shards['stock:']"]) for shards in (SHARDS_MAX + 1, True, "4")),
        *(({"shards": shards}, ["shards"]) for shards in ({5: 4}, None)),
        *(
            ({name: {prefix: each}}, [f"{name}[", "]: a prefix is text"])
            for name, each in (("shards", 4), ("limits", Limit(floor=0)), ("thresholds", (Threshold(below=1),)))
            for prefix in ("stock :", "a" * 257, 5)
        ),
        ({"limits": {"a:": Limit(floor=-1, region="eu-wst-1")}}, ["in no Region"]),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_by_name(changed: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(InvalidSettings) as raised:
        settings(**changed)
    assert all(name in str(raised.value) for name in named)


def test_a_region_that_aws_cannot_have_is_taken_with_an_endpoint_alone() -> None:
    for typed in ("eu-wst-1", "eu-west", "eu-west-1a", "west-1", "eu"):
        with pytest.raises(InvalidSettings, match=f"AWS has no Region {typed}. With an endpoint_url it is taken"):
            Settings(table="counters", region=typed)
        assert Settings(table="counters", region=typed, endpoint_url="http://localhost:1").region == typed


def test_every_region_of_dynamodb_that_boto3_knows_is_one_and_so_are_those_to_come() -> None:
    session = boto3.Session()
    known = [
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("dynamodb", partition)
    ]
    assert len(known) > 30
    for region in [*known, "eu-west-9", "nz-central-12", "eusc-de-southwest-1"]:
        assert settings(region=region).region == region


@pytest.mark.parametrize(
    ("name", "passed", "most"),
    [
        *((name, "x" * 300, 40) for name in ("table", "clean", "keep_ms")),
        *(("regions", ("r" * 300,), 200), ("endpoint_url", "u" * 300, 200)),
    ],
)
def test_what_was_passed_is_shown_as_far_as_a_log_line_goes(name: str, passed: object, most: int) -> None:
    with pytest.raises(InvalidSettings) as raised:
        settings(**{name: passed})
    assert f"{name}={ascii(passed)[: most - 1]}… " in f"{raised.value} "


def test_a_value_that_is_cut_ends_in_a_sign_of_it_within_its_length() -> None:
    assert (shown("x" * 38), shown("x" * 39)) == (f"'{'x' * 38}'", f"'{'x' * 38}…")


def test_settings_at_their_limits_are_made() -> None:
    made = settings(
        table="a.B_1-z",
        regions=["eu-west-1", "us-east-1"],
        shards={"": 1, "hot:": SHARDS_MAX},
        allowed_lateness_ms=0,
        keep_ms=2,
        read_time_max_ms=1,
        fold_min=FOLD_MAX_LIMIT,
        fold_max=FOLD_MAX_LIMIT,
    )
    assert made.regions == ("eu-west-1", "us-east-1")
    assert settings(keep_ms=tokens.TIME_MS_MAX).keep_ms == tokens.TIME_MS_MAX  # what a token holds
    with pytest.raises(InvalidSettings):
        settings(keep_ms=tokens.TIME_MS_MAX + 1)


def test_settings_do_not_change_after_they_were_checked_can_be_a_key_and_travel_to_another_process() -> None:
    shards = {"stock:": 4}
    made = settings(shards=shards)
    shards["stock:"] = 0
    assert made.shards == {"stock:": 4}
    with pytest.raises(AttributeError):
        made.keep_ms = 1  # type: ignore[misc]
    assert {made: 1}[settings(shards={"stock:": 4})] == 1
    assert pickle.loads(pickle.dumps(made)) == made


# -- lanes ---------------------------------------------------------------------------------------------------------


def test_the_longest_prefix_that_fits_says_how_many_shards() -> None:
    made = settings(shards={"": 2, "stock:": 4, "stock:85": 8})
    assert [made.shards_of(name) for name in ("likes", "stock:1", "stock:85123A", "stock:8")] == [2, 4, 8, 4]
    assert settings(shards={"stock:": 4}).shards_of("likes") == 1


def test_the_lanes_of_a_counter_are_its_shards_in_every_region() -> None:
    made = settings(regions=("eu-west-1", "us-east-1"), shards={"hot:": 2})
    assert made.lanes_of("cold") == (Lane("eu-west-1", 0, "cold"), Lane("us-east-1", 0, "cold"))
    assert made.lanes_of("hot:a") == tuple(
        Lane(region, shard, "hot:a") for region in ("eu-west-1", "us-east-1") for shard in (0, 1)
    )
    assert made.lanes_of("hot:a", "us-east-1") == (Lane("us-east-1", 0, "hot:a"), Lane("us-east-1", 1, "hot:a"))
    with pytest.raises(InvalidCounter):
        made.lanes_of("a b")
    assert made.lane_for("cold", tokens.make(1_000, bytes(9) + b"\x07"), "us-east-1") == Lane("us-east-1", 0, "cold")
    found = {made.lane_for("hot:a", tokens.make(5, bytes(9) + last), "eu-west-1") for last in (b"\x06", b"\x07")}
    assert found == set(made.lanes_of("hot:a", "eu-west-1"))


@given(st.binary(min_size=10, max_size=10), st.integers(1, SHARDS_MAX))
def test_a_change_goes_into_one_of_the_lanes_that_are_read(randomness: bytes, shards: int) -> None:
    made = settings(shards={"": shards})
    token = tokens.make(5, randomness)
    assert made.lane_for("c", token, "eu-west-1") in made.lanes_of("c")
    lane = made.lane_for("c", token, "eu-west-1")
    assert (lane.shard, lane.shards) == (tokens.draw(token, shards) if shards > 1 else 0, shards)


# -- the environment -----------------------------------------------------------------------------------------------

FULL = {
    "LEDGER_TABLE": "counters",
    "AWS_REGION": "us-east-1",
    "LEDGER_REGIONS": "eu-west-1, us-east-1,",
    "LEDGER_ENDPOINT_URL": "http://127.0.0.1:8000",
    "LEDGER_SHARDS": '{"stock:": 4}',
    "LEDGER_ALLOWED_LATENESS_MS": "1",
    "LEDGER_KEEP_MS": "7",
    "LEDGER_READ_TIME_MAX_MS": "6",
    "LEDGER_FOLD_MIN": "2",
    "LEDGER_FOLD_MAX": "5",
    "LEDGER_CLEAN": "false",
}


def test_every_setting_is_read_from_its_variable() -> None:
    assert Settings.from_env(FULL) == Settings(
        table="counters",
        region="us-east-1",
        regions=("eu-west-1", "us-east-1"),
        endpoint_url="http://127.0.0.1:8000",
        shards={"stock:": 4},
        allowed_lateness_ms=1,
        keep_ms=7,
        read_time_max_ms=6,
        fold_min=2,
        fold_max=5,
        clean=False,
    )


def test_an_argument_wins_over_the_environment_over_the_default() -> None:
    made = Settings.from_env(FULL, table="others", keep_ms=100, endpoint_url=None, regions=("us-east-1",))
    assert (made.table, made.keep_ms, made.endpoint_url, made.regions) == ("others", 100, None, ("us-east-1",))
    assert (made.fold_max, made.clean) == (5, False)
    bare = Settings.from_env({"LEDGER_TABLE": "counters", "AWS_REGION": "eu-west-1"})
    empty = dict.fromkeys(FULL, "") | {"LEDGER_TABLE": "counters", "AWS_REGION": "eu-west-1"}
    assert bare == Settings.from_env(empty) == settings()
    for text, said in (("true", True), ("True", True), ("false", False), ("FALSE", False)):
        assert Settings.from_env({**FULL, "LEDGER_CLEAN": text}).clean is said
        assert Settings.from_env({**FULL, "LEDGER_INSERT_ONLY": text}).insert_only is said


@pytest.mark.parametrize("variable", ["LEDGER_TABLE", "AWS_REGION"])
def test_what_must_be_set_is_named_when_it_is_missing(variable: str) -> None:
    with pytest.raises(InvalidSettings, match=rf"set {variable}\."):
        Settings.from_env({name: value for name, value in FULL.items() if name != variable})


@pytest.mark.parametrize(
    ("variable", "text", "named"),
    [
        *(("LEDGER_SHARDS", text, "LEDGER_SHARDS") for text in ("stock:=4", "5", '["ab", 1]', "[]", '[["a", 1]]')),
        ("LEDGER_SHARDS", '{"a": 4, "a": 4}', "LEDGER_SHARDS"),  # a prefix twice
        ("LEDGER_LIMITS", '{"a": {"floor": 0}, "a": {"ceiling": 0}}', "LEDGER_LIMITS"),
        ("LEDGER_LIMITS", '{"a": {"floor": 0, "region": "EU"}}', "LEDGER_LIMITS: A Region's name"),
        ("LEDGER_LIMITS", '{"a": {"flor": 0}}', r"LEDGER_LIMITS: A Limit has no 'flor': .*\.$"),
        *(("LEDGER_LIMITS", f'{{"a": {said}}}', "cannot be read as limits") for said in ("5", '"floor"', "null")),
        *(("LEDGER_CLEAN", text, "LEDGER_CLEAN") for text in ("no", "0")),
        *(("LEDGER_KEEP_MS", text, "LEDGER_KEEP_MS") for text in ("10m", "1.5")),
        ("LEDGER_FOLD_MIN", "0x10", "LEDGER_FOLD_MIN"),
        ("LEDGER_FOLD_MIN", "9", "fold_min=9"),  # held against the others
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variable: str, text: str, named: str) -> None:
    with pytest.raises(InvalidSettings, match=named):
        Settings.from_env({**FULL, variable: text})


def test_without_a_mapping_the_process_environment_is_read() -> None:
    expected = os.environ.get("LEDGER_ENDPOINT_URL") or None
    assert Settings.from_env(table="counters", region="eu-west-1", regions=("eu-west-1",)).endpoint_url == expected
