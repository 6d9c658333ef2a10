"""Settings that contradict each other are never made; the environment is read in one place.

Thresholds are settings.
"""

import os
import pickle
from datetime import timedelta
from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Keep, Settings, Threshold
from ledger.core import tokens
from ledger.core.errors import InvalidCounter, InvalidSettings, shown
from ledger.core.limit import IN, OUT, Limit
from ledger.core.settings import FOLD_MAX_LIMIT, LEAST, SETTINGS_MAX, SHARDS_MAX, _plans
from ledger.core.values import Lane
from tests import world
from tests.world import A, B

KEEP = Keep(late=timedelta(days=1), keep=timedelta(days=2))
LOW, HIGH = Threshold(below=10), Threshold(above=1_000, name="quorum", region=B)


def settings(**changed: Any) -> Settings:
    return Settings(**{"table": "counters", "region": A, **changed})


# a setting, values that it cannot have, what the refusal says
WRONG: list[tuple[str, list[Any], str]] = [
    ("table", ["", "a", "a b c", 12345, "x" * 256], "table="),
    ("region", ["", 5, None, "EU"], "region"),
    ("region", ["Ireland"], "region='Ireland' is no Region name. Name one of AWS"),
    ("regions", [(A, "us east")], "are not Region names. Name one of AWS, such as eu-west-1."),
    ("regions", [(B,)], f"region='{A}' is not one of regions="),
    ("regions", [(A, A)], "regions=.* twice"),
    ("regions", [(A, "us east"), A, None], "regions="),
    (
        "endpoint_url",
        ["localhost:8000", 8000, "http://x:port", "http://x:99999", "http://x:0"],
        "endpoint_url=",
    ),
    *((name, ["false", None], f"{name}=") for name in ("clean", "insert_only", "unshared_limits")),
    *(
        (name, [least - 1], f"{name}={least - 1} is not an int from {least}")
        for name, least in LEAST.items()
    ),
    ("keep_ms", ["600000", 1.5, True, tokens.TIME_MS_MAX + 1], "keep_ms="),
    (
        "keep_ms",
        [60_000],
        "keep_ms=60000 must be above read_time_max_ms=60000: else clean could delete a delta",
    ),
    ("fold_min", [9_000], "fold_min=9000 is above fold_max=8000"),
    ("fold_max", [FOLD_MAX_LIMIT + 1], f"fold_max={FOLD_MAX_LIMIT + 1} is above"),
    ("shards", [{"stock:": n} for n in (0, SHARDS_MAX + 1, True, "4")], r"shards\['stock:'\]="),
    *(
        (name, [5, "ab"], f"{name}=.* is not a mapping")
        for name in ("shards", "limits", "thresholds")
    ),
    *(
        (
            name,
            [{prefix: said} for prefix in ("stock :", "a" * 257, 5)],
            rf"{name}\[.*\]: a prefix is the beginning",
        )
        for name, said in (("shards", 4), ("limits", Limit(floor=0)), ("thresholds", (LOW,)))
    ),
    *(
        (name, [{prefix: said}], rf"{name}\[.*\]: a prefix .*{says}\. Write '{right}'")
        for name, said in (
            ("shards", 4),
            ("limits", Limit(floor=0)),
            ("thresholds", (LOW,)),
            ("periods", KEEP),
        )
        for prefix, right, says in (
            ("stock:*", "stock:", r"so \* and \? stand for nothing"),
            ("stock:?", "stock:", r"so \* and \? stand for nothing"),
            ("stock:*:eu", "stock:", r"so \* and \? stand for nothing"),
            ("*", "", r"so \* and \? stand for nothing"),
            ("stock: ", "stock:", "without spaces"),
            ("stock :", "stock:", "without spaces"),
            (" stock:*", "stock:", r"so \* and \? stand for nothing"),
        )
    ),
    ("limits", [{"a:": 5}], "is not a Limit"),
    (
        "limits",
        [{"a:": Limit(floor=-1, region="eu-wst-1")}],
        r"in a Region that regions=\(.eu-west-1",
    ),
]
WRONG_THRESHOLDS: list[tuple[Any, str]] = [
    ([LOW, Threshold(below=5, name="below-10")], "two thresholds with the name below-10"),
    ([LOW, Threshold(below=10, name="low")], "below-10 and low say the same"),
    ([LOW, Threshold(below=10, name="low", region=A)], "below-10 and low say the same"),
    ([Threshold(left=3), Threshold(left=3, name="few")], "left-3 and few say the same"),
    (
        [Threshold(of_ceiling=0.9), Threshold(of_ceiling=0.90, name="near")],
        "of-ceiling-0.9 and near say the same",
    ),
    ([LOW, Threshold(above=9)], "above=9 and below=10 contradict each other"),
    ([Threshold(above=5), LOW], "above=5 and below=10 contradict each other"),
    (
        [Threshold(above=5, region="ap-south-1")],
        r"no Region of regions=\('eu-west-1', .*\) publishes above-5\.$",
    ),
    *((some, "is not a tuple of Thresholds") for some in ([{"below": 10}], LOW, "ab")),
]


def test_settings_that_cannot_be_are_refused_by_name() -> None:
    for name, values, says in WRONG:
        for wrong in values:
            with pytest.raises(InvalidSettings, match=says):
                settings(**{name: wrong})
    for some, says in WRONG_THRESHOLDS:
        with pytest.raises(InvalidSettings, match=says):
            world.settings(thresholds={"stock:": some})


def test_a_region_is_known_by_its_form_unless_an_endpoint_is_set() -> None:
    session = boto3.Session()
    partitions = session.get_available_partitions()
    known = [
        region for each in partitions for region in session.get_available_regions("dynamodb", each)
    ]
    assert len(known) > 30
    for region in [*known, "eu-west-9", "nz-central-12", "eusc-de-southwest-1"]:
        assert settings(region=region).region == region
    for typed in ("eu-wst-1", "eu-west", "eu-west-1a", "west-1", "eu"):
        with pytest.raises(
            InvalidSettings, match=f"AWS has no Region {typed}. Only an endpoint_url"
        ):
            settings(region=typed)
        assert settings(region=typed, endpoint_url="http://localhost:1").region == typed


def test_what_was_passed_is_shown_as_far_as_a_log_line_goes() -> None:
    for name, passed, most in (
        ("table", "x" * 300, 40),
        ("regions", ("r" * 300,), 200),
        ("clean", "x" * 300, 40),
    ):
        with pytest.raises(InvalidSettings) as raised:
            settings(**{name: passed})
        assert f"{name}={ascii(passed)[: most - 1]}… " in f"{raised.value} "
    assert (shown("x" * 38), shown("x" * 39)) == (f"'{'x' * 38}'", f"'{'x' * 38}…")


def test_settings_at_their_limits_are_made() -> None:
    made = settings()
    assert (made.regions, made.endpoint_url, made.shards) == ((A,), None, {})
    extremes = {
        "allowed_lateness_ms": 0,
        "keep_ms": 2,
        "read_time_max_ms": 1,
        "clean_units_per_s": 1,
    }
    folds = {"fold_min": FOLD_MAX_LIMIT, "fold_max": FOLD_MAX_LIMIT}
    made = settings(
        table="a.B_1-z", regions=[A, B], shards={"": 1, "hot:": SHARDS_MAX}, **extremes, **folds
    )
    assert made.regions == (A, B)
    assert settings(keep_ms=tokens.TIME_MS_MAX).keep_ms == tokens.TIME_MS_MAX  # what a token holds


def test_settings_are_frozen_hashable_and_picklable() -> None:
    shards, some = {"stock:": 4}, [LOW]
    made = settings(shards=shards, thresholds={"stock:": some})
    shards["stock:"] = 0
    some.append(Threshold(below=10, name="same"))
    assert (made.shards, made.thresholds) == ({"stock:": 4}, {"stock:": (LOW,)})
    with pytest.raises(AttributeError):
        made.keep_ms = 1  # type: ignore[misc]
    assert {made: 1}[settings(shards={"stock:": 4}, thresholds={"stock:": (LOW,)})] == 1
    assert pickle.loads(pickle.dumps(made)) == made


def test_the_longest_prefix_says_the_shards_and_their_lanes() -> None:
    made = settings(regions=(A, B), shards={"": 2, "stock:": 4, "stock:85": 1})
    assert [made.shards_of(name) for name in ("likes", "stock:1", "stock:85123A", "stock:8")] == [
        2,
        4,
        1,
        4,
    ]
    assert settings(shards={"stock:": 4}).shards_of("likes") == 1
    assert made.lanes_of("stock:85") == (Lane(A, 0, "stock:85"), Lane(B, 0, "stock:85"))
    assert made.lanes_of("likes") == tuple(
        Lane(region, shard, "likes") for region in (A, B) for shard in (0, 1)
    )
    assert made.lanes_of("likes", B) == (Lane(B, 0, "likes"), Lane(B, 1, "likes"))
    # nobody reads the third
    assert [made.known(Lane(A, shard, "likes")).shards for shard in (1, 2)] == [2, 0]
    with pytest.raises(InvalidCounter):
        made.lanes_of("a b")


@given(st.binary(min_size=10, max_size=10), st.integers(1, SHARDS_MAX))
def test_a_change_goes_into_one_of_the_lanes_that_are_read(randomness: bytes, shards: int) -> None:
    made, token = settings(shards={"": shards}), tokens.make(5, randomness)
    lane = made.lane_for("c", token, A)
    assert lane in made.lanes_of("c")
    assert made.reads(lane)
    assert (lane.shard, lane.shards) == (tokens.draw(token, shards) if shards > 1 else 0, shards)


def test_a_threshold_is_strict_and_named_by_itself_or_as_given() -> None:
    assert [LOW.side_of(value) for value in (9, 10, 11)] == [IN, OUT, OUT]
    assert [HIGH.side_of(value) for value in (999, 1_000, 1_001)] == [OUT, OUT, IN]
    assert [Threshold(above=0).side_of(value) for value in (0, 1)] == [OUT, IN]
    assert [Threshold(below=0).side_of(value) for value in (-1, 0)] == [IN, OUT]
    made = (
        LOW,
        HIGH,
        Threshold(above=5),
        Threshold(below=-5),
        Threshold(of_ceiling=0.9),
        Threshold(left=10),
    )
    names = [each.name for each in made]
    assert names == ["below-10", "quorum", "above-5", "below--5", "of-ceiling-0.9", "left-10"]
    assert Threshold(of_ceiling=1e-05).name == "of-ceiling-1e-05"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, r"one of above, below, of_ceiling, left; none was given, as in Threshold\(below=10\)"),
        ({"above": 1, "below": 1}, "above and below were given: make a Threshold of each"),
        ({"of_ceiling": 0.9, "left": 1}, "of_ceiling and left were given"),
        *(
            ({"of_ceiling": of}, f"of_ceiling={of!r} is not a float above 0 and at most 1")
            for of in NO_SHARES
        ),
        *(
            ({"left": left}, f"left={left!r} is not an int from 0")
            for left in (-1, 1.0, True, "1", 10**18 + 1)
        ),
        *(({"above": above}, f"above={above!r} is not an int") for above in ("1", True)),
        ({"below": 10**18 + 1}, "magnitude at most"),
        *(({"above": 1, "name": name}, f"name={name!r} is not") for name in ("a b", None, "")),
        ({"above": 1, "region": "EU"}, "A Region's name"),
    ]
    for given_, why in wrong:
        with pytest.raises(InvalidSettings, match=why):
            Threshold(**given_)


NO_SHARES = (0.0, -0.5, 1.1, 1, True, "0.9", float("nan"), float("inf"))


def test_a_threshold_of_a_limit_is_its_exact_share() -> None:
    for of, ceiling, above in (
        (0.9, 10, 9),
        (0.9, 11, 9),
        (0.29, 100, 29),  # as binary floats 28.999…
        (0.1, 10**18, 10**17),
        (0.7, 10**18 - 1, 7 * 10**17 - 1),
        (0.3333333333333333, 10**18, 333_333_333_333_333_300),
        (1.0, 10, 10),
        (0.5, 0, 0),
    ):
        named = Threshold(of_ceiling=of, name="near", region=B)
        assert (
            named.at(-5, ceiling)
            == named.at(None, ceiling)
            == Threshold(above=above, name="near", region=B)
        )
    share, left = Threshold(of_ceiling=0.5), Threshold(left=3)
    assert left.at(None, 10) == Threshold(above=7, name="left-3")
    assert left.at(-10, None) == Threshold(below=-7, name="left-3")
    assert (share.at(0, None), share.at(None, None), left.at(None, None), left.at(0, 10)) == (
        None,
    ) * 4
    assert LOW.at(None, None) == LOW.at(0, 5) == LOW
    for each in (share, left):
        with pytest.raises(ValueError, match="is of a limit"):
            each.side_of(5)


def test_a_threshold_of_a_limit_without_that_side_is_refused() -> None:
    up, down = Limit(ceiling=10, region=A), Limit(floor=0)
    both = Limit(floor=0, ceiling=10, region=A)
    share, left = Threshold(of_ceiling=0.9), Threshold(left=3)
    beside: dict[str, tuple[Threshold, ...]] = {"a:b:": (LOW,)}
    for each, limits, others, says in (
        (
            share,
            {},
            {},
            r"thresholds\['a:'\]: of-ceiling-0.9 has no counter with a ceiling: .* above=",
        ),
        (share, {"a:": down}, {}, "no counter with a ceiling"),
        (share, {"": up, "a:": down}, {}, "no counter with a ceiling"),
        (share, {"a:b:": up}, beside, "no counter with a ceiling"),
        (left, {"b:": up}, {}, "left-3 has no counter with a limit: .* above= or below="),
        (left, {"a:": both}, {}, "left-3 has counters with a floor and a ceiling: choose one"),
        (left, {"a:": up, "a:b:": both}, {}, "left-3 has counters with a floor and a ceiling"),
    ):
        with pytest.raises(InvalidSettings, match=says):
            settings(limits=limits, thresholds={"a:": (each,), **others})
    for each, limits, others in (
        (share, {"": up}, {}),
        (share, {"a:": both}, {}),
        (share, {"a:": down, "a:b:": up}, {}),  # certain of some counters alone
        (left, {"a:": up, "a:b:": down}, {}),
        (left, {"a:b:": up}, {}),
        (left, {"a:": up, "a:b:": both}, beside),
        (left, {"": both, "a:": down}, {}),
    ):
        assert settings(limits=limits, thresholds={"a:": (each,), **others}).thresholds["a:"] == (
            each,
        )


def test_thresholds_are_the_longest_prefixes_and_one_regions() -> None:
    given_ = {"stock:": (LOW, HIGH), "stock:shoes:": [Threshold(below=1)]}
    here, there = (world.settings(region, thresholds=given_) for region in (A, B))
    assert (here.told_here("stock:1"), there.told_here("stock:1")) == ((LOW,), (HIGH,))
    assert here.thresholds_of("stock:1") == there.thresholds_of("stock:1") == (LOW, HIGH)
    assert [each.name for each in here.told_here("stock:shoes:1")] == ["below-1"]
    assert (there.told_here("stock:shoes:1"), here.told_here("seats:1")) == ((), ())
    assert (here.tells, there.tells) == (True, True)
    assert not world.settings(B, thresholds={"": (LOW,)}).tells
    assert world.settings(
        B, thresholds={"stock:": (LOW, Threshold(below=10, name="low", region=B))}
    ).tells
    # 10 is of neither
    assert world.settings(thresholds={"stock:": (Threshold(above=10), LOW)}).tells


FULL = {
    "LEDGER_TABLE": "counters",
    "AWS_REGION": B,
    "LEDGER_REGIONS": f"{A}, {B},",
    "LEDGER_ENDPOINT_URL": "http://127.0.0.1:8000",
    "LEDGER_SHARDS": '{"stock:": 4}',
    "LEDGER_LIMITS": '{"seats:": {"ceiling": 7, "region": "eu-west-1"}}',
    "LEDGER_THRESHOLDS": '{"stock:": [{"below": 10}, {"above": 1000, "name": "quorum", "region": '
    '"us-east-1"}], "seats:": [{"of_ceiling": 0.9}, {"left": 2}]}',
    "LEDGER_ALLOWED_LATENESS_MS": "1",
    "LEDGER_KEEP_MS": "7",
    "LEDGER_READ_TIME_MAX_MS": "6",
    "LEDGER_FOLD_MIN": "2",
    "LEDGER_FOLD_MAX": "5",
    "LEDGER_CLEAN": "false",
}


def test_a_setting_is_the_argument_then_the_variable() -> None:
    places: Any = {
        "table": "counters",
        "region": B,
        "regions": (A, B),
        "endpoint_url": "http://127.0.0.1:8000",
    }
    numbers: Any = {
        "allowed_lateness_ms": 1,
        "keep_ms": 7,
        "read_time_max_ms": 6,
        "fold_min": 2,
        "fold_max": 5,
    }
    limits = {"seats:": Limit(ceiling=7, region=A)}
    thresholds = {"stock:": (LOW, HIGH), "seats:": (Threshold(of_ceiling=0.9), Threshold(left=2))}
    by_prefix: Any = {"shards": {"stock:": 4}, "limits": limits, "thresholds": thresholds}
    assert Settings.from_env(FULL) == Settings(**places, **numbers, **by_prefix, clean=False)
    made = Settings.from_env(FULL, table="others", keep_ms=100, endpoint_url=None)
    assert (made.table, made.keep_ms, made.endpoint_url, made.fold_max) == ("others", 100, None, 5)
    bare = {"LEDGER_TABLE": "counters", "AWS_REGION": A}
    assert (
        Settings.from_env(bare) == Settings.from_env(dict.fromkeys(FULL, "") | bare) == settings()
    )
    for text, said in (("true", True), ("True", True), ("false", False), ("FALSE", False)):
        assert Settings.from_env({**FULL, "LEDGER_CLEAN": text}).clean is said
        assert Settings.from_env({**FULL, "LEDGER_INSERT_ONLY": text}).insert_only is said
    for variable in ("LEDGER_TABLE", "AWS_REGION"):
        with pytest.raises(InvalidSettings, match=rf"set {variable}\."):
            Settings.from_env({name: value for name, value in FULL.items() if name != variable})
    # without a mapping the process's own is read
    expected = os.environ.get("LEDGER_ENDPOINT_URL") or None
    assert Settings.from_env(table="counters", region=A, regions=(A,)).endpoint_url == expected


UNREADABLE: list[tuple[str, list[str], str]] = [
    (
        "SHARDS",
        ["stock:=4", "5", '["ab", 1]', "[]", "{]", '{"a": 4, "a": 4}'],
        "LEDGER_SHARDS=.* cannot be read",
    ),
    ("LIMITS", ['{"a": {"floor": 0}, "a": {"ceiling": 0}}'], "LEDGER_LIMITS"),  # a prefix twice
    ("LIMITS", ['{"a": {"floor": 0, "region": "EU"}}'], "LEDGER_LIMITS: A Region's name"),
    ("LIMITS", ['{"a": {"flor": 0}}'], r"LEDGER_LIMITS: A Limit has no 'flor': .*\.$"),
    ("LIMITS", ['{"a": 5}', '{"a": "floor"}', '{"a": null}'], "cannot be read as limits"),
    (
        "THRESHOLDS",
        ['{"a": [{"below": 1}], "a": [{"below": 2}]}', '[{"below": 1}]'],
        "LEDGER_THRESHOLDS",
    ),
    (
        "THRESHOLDS",
        ['{"a": [{"under": 1}]}'],
        r"no 'under': it has above, below, of_ceiling, left, name, region\.$",
    ),
    (
        "THRESHOLDS",
        [f'{{"a": {said}}}' for said in ("[5]", '["below"]', '{"below": 1}', "{}", '""')],
        "cannot be read as thresholds",
    ),
    ("THRESHOLDS", ['{"a": [{"below": 1.5}]}'], "LEDGER_THRESHOLDS: below=1.5 is not an int"),
    (
        "THRESHOLDS",
        ['{"a": [{"of_ceiling": 1}]}'],
        "LEDGER_THRESHOLDS: of_ceiling=1 is not a float",
    ),
    *(
        (name, [f'{{"stock:*": {said}}}'], rf"{name.lower()}\['stock:\*'\]: .*\. Write 'stock:'")
        for name, said in {
            "SHARDS": 4,
            "LIMITS": '{"floor": 0}',
            "THRESHOLDS": '[{"below": 1}]',
            "PERIODS": '{"late_s": 1, "keep_s": 1}',
        }.items()
    ),
    ("CLEAN", ["no", "0"], "LEDGER_CLEAN=.*it is true or false"),
    ("KEEP_MS", ["10m", "1.5", "0x10"], "LEDGER_KEEP_MS=.*it is an int"),
    ("FOLD_MIN", ["9"], "fold_min=9"),  # held against the others
]


def test_a_variable_that_cannot_be_read_is_named() -> None:
    for variable, texts, named in UNREADABLE:
        for text in texts:
            with pytest.raises(InvalidSettings, match=named):
                Settings.from_env({**FULL, f"LEDGER_{variable}": text})


def test_plans_of_many_settings_compare_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their hash leaves limits out, so a table of hashes would compare all that differ in these."""
    many = [
        settings(limits={"seats:": Limit(ceiling=n, region=A)}) for n in range(2 * SETTINGS_MAX)
    ]
    monkeypatch.setattr(Settings, "__eq__", lambda *_: pytest.fail("two Settings were compared"))
    for _ in range(2):
        found = [each.limit_of("seats:a") for each in many]
        assert found == [Limit(ceiling=n, region=A) for n in range(2 * SETTINGS_MAX)]
    assert len(_plans) <= SETTINGS_MAX
