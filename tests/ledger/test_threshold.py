"""Thresholds in the settings: which side a value is on, who tells of them, and what contradicts itself."""

from typing import Any

import pytest

from ledger import Settings, Threshold
from ledger.errors import InvalidSettings
from ledger.limit import IN, OUT
from tests.world import A, B, settings

LOW, HIGH = Threshold(below=10), Threshold(above=1_000, name="quorum", region=B)


def test_a_threshold_is_strict() -> None:
    assert [LOW.side_of(value) for value in (9, 10, 11)] == [IN, OUT, OUT]
    assert [HIGH.side_of(value) for value in (999, 1_000, 1_001)] == [OUT, OUT, IN]
    assert [Threshold(above=0).side_of(value) for value in (0, 1)] == [OUT, IN]
    assert [Threshold(below=0).side_of(value) for value in (-1, 0)] == [IN, OUT]


def test_its_name_says_what_it_is_unless_it_is_given_one() -> None:
    names = [each.name for each in (LOW, HIGH, Threshold(above=5), Threshold(below=-5))]
    assert names == ["below-10", "quorum", "above-5", "below--5"]


def test_the_longest_prefix_decides_and_one_region_tells() -> None:
    given = {"stock:": (LOW, HIGH), "stock:shoes:": [Threshold(below=1)]}
    here, there = (settings(region, thresholds=given) for region in (A, B))
    assert (here.told_here("stock:1"), there.told_here("stock:1")) == ((LOW,), (HIGH,))
    assert [each.name for each in here.told_here("stock:shoes:1")] == ["below-1"]
    assert (there.told_here("stock:shoes:1"), here.told_here("seats:1")) == ((), ())
    assert (here.tells, there.tells, settings(B, thresholds={"": (LOW,)}).tells, settings().tells) == (
        True,
        True,
        False,
        False,
    )


def test_they_are_read_from_the_environment() -> None:
    environ = {"LEDGER_TABLE": "counters", "AWS_REGION": A, "LEDGER_REGIONS": f"{A},{B}"}
    text = '{"stock:": [{"below": 10}, {"above": 1000, "name": "quorum", "region": "us-east-1"}]}'
    read = Settings.from_env(environ | {"LEDGER_THRESHOLDS": text})
    assert read == settings(fold_min=32, thresholds={"stock:": (LOW, HIGH)})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, r"above or below; neither was given, as in Threshold\(below=10\)"),
        ({"above": 1, "below": 1}, "above or below; both were given"),
        ({"above": "1"}, "above='1' is not an int"),
        ({"above": True}, "above=True is not an int"),
        ({"below": 10**18 + 1}, "magnitude at most"),
        ({"above": 1, "name": "a b"}, "name='a b' is not"),
        ({"above": 1, "name": None}, "name=None is not"),
        ({"above": 1, "name": ""}, "name='' is not"),
        ({"above": 1, "region": "EU"}, "A Region's name"),
    ],
)
def test_a_threshold_that_is_none_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidSettings, match=why):
        Threshold(**given)


@pytest.mark.parametrize(
    ("some", "why"),
    [
        ([LOW, Threshold(below=5, name="below-10")], "two thresholds with the name below-10"),
        ([LOW, Threshold(below=10, name="low")], "below-10 and low say the same"),
        ([LOW, Threshold(below=10, name="low", region=A)], "below-10 and low say the same"),
        ([LOW, Threshold(above=9)], "above=9 and below=10 contradict each other"),
        ([Threshold(above=5), LOW], "above=5 and below=10 contradict each other"),
        ([Threshold(above=5, region="ap-south-1")], r"above-5 is told in no Region of regions=\('eu-west-1', .*\)\.$"),
        ([Threshold(above=5, region="us-eats-1")], r"told in no Region"),
        ([{"below": 10}], "is not a tuple of Thresholds"),
        (LOW, "is not a tuple of Thresholds"),
        ("ab", "is not a tuple of Thresholds"),
    ],
)
def test_thresholds_that_contradict_each_other_are_refused(some: Any, why: str) -> None:
    with pytest.raises(InvalidSettings, match=why):
        settings(thresholds={"stock:": some})


def test_the_same_number_may_be_told_in_two_regions() -> None:
    assert settings(B, thresholds={"stock:": (LOW, Threshold(below=10, name="low", region=B))}).tells


def test_above_and_below_that_leave_a_value_to_neither_go_together() -> None:
    assert settings(thresholds={"stock:": (Threshold(above=10), LOW)}).tells


@pytest.mark.parametrize("given", [5, [LOW], {3: (LOW,)}])
def test_what_is_no_mapping_from_prefixes_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSettings, match="thresholds"):
        settings(thresholds=given)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": [{"below": 1}], "a": [{"below": 2}]}', "LEDGER_THRESHOLDS"),
        (
            '{"a": [{"under": 1}]}',
            r"LEDGER_THRESHOLDS: A Threshold has no 'under': it has above, below, name, region\.$",
        ),
        ('{"a": [{"bellow": 1}]}', r"A Threshold has no 'bellow': .*\.$"),
        ('{"a": [5]}', "cannot be read as thresholds"),
        ('{"a": ["below"]}', "cannot be read as thresholds"),
        ('{"a": {"below": 1}}', "LEDGER_THRESHOLDS"),
        ('{"a": {}}', "cannot be read as thresholds"),
        ('{"a": ""}', "cannot be read as thresholds"),
        ('[{"below": 1}]', "LEDGER_THRESHOLDS"),
        ('{"a": [{"below": 1.5}]}', r"LEDGER_THRESHOLDS: below=1.5 is not an int"),
    ],
)
def test_a_variable_that_says_no_thresholds_is_named(text: str, why: str) -> None:
    with pytest.raises(InvalidSettings, match=why):
        Settings.from_env({"LEDGER_TABLE": "counters", "AWS_REGION": A, "LEDGER_THRESHOLDS": text})


def test_a_list_that_changes_later_changes_no_settings() -> None:
    some = [LOW]
    own = settings(thresholds={"stock:": some})
    some.append(Threshold(below=10, name="same"))
    assert own == settings(thresholds={"stock:": (LOW,)})
    assert own.told_here("stock:1") == (LOW,)
