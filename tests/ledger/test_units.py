"""The size and unit rules against the examples on AWS's pages, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.units import Cost, item_bytes, number_bytes, read_units, value_bytes, write_units

KB = 1024
SIZES = st.integers(0, 400 * KB)
VALUES = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=20)),
        st.builds(lambda number: {"N": str(number)}, st.integers(-(10**38) + 1, 10**38 - 1)),
        st.builds(lambda raw: {"B": raw}, st.binary(max_size=20)),
        st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    ),
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=3)),
        st.builds(lambda values: {"M": values}, st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    ),
    max_leaves=5,
)
ITEMS = st.dictionaries(st.text(max_size=10), VALUES, max_size=5)


def test_a_delta_is_as_big_as_its_names_and_values() -> None:
    delta = {"pk": {"S": "delta#eu-west-1#0#stock:85123A"}, "sk": {"S": "0" * 26}, "change": {"N": "-6"}}
    assert item_bytes(delta) == (2 + 30) + (2 + 26) + (6 + 3)


def test_a_segment_is_as_big_as_its_raw_bytes() -> None:
    assert item_bytes({"entries": {"B": bytes(24)}}) == 7 + 24


def test_a_string_is_measured_in_utf8() -> None:
    assert item_bytes({"é": {"S": "€"}}) == 2 + 3


@pytest.mark.parametrize(
    ("number", "size"),
    [
        ("0", 1),
        ("7", 2),
        ("42", 2),
        ("123", 3),
        ("-6", 3),
        ("1000000", 2),
        ("0.0050", 2),
        ("1E+20", 2),
        ("-0", 1),
        ("9" * 38, 20),
        ("-" + "9" * 38, 21),
    ],
)
def test_a_number_takes_a_byte_for_two_significant_digits(number: str, size: int) -> None:
    assert number_bytes(number) == size


def test_true_and_null_take_a_byte() -> None:
    assert value_bytes({"BOOL": True}) == value_bytes({"NULL": True}) == 1


def test_an_empty_list_and_an_empty_map_take_three_bytes() -> None:
    assert value_bytes({"L": []}) == value_bytes({"M": {}}) == 3


def test_each_element_of_a_list_or_map_takes_a_byte_more() -> None:
    assert value_bytes({"L": [{"S": "ab"}, {"N": "1"}]}) == 3 + (1 + 2) + (1 + 2)
    assert value_bytes({"M": {"key": {"S": "ab"}}}) == 3 + (1 + 3 + 2)


def test_a_set_is_the_sum_of_its_elements() -> None:
    assert value_bytes({"SS": ["a", "bc"]}) == 3


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="X"):
        value_bytes({"X": ""})


def test_a_500_byte_write_costs_one_unit() -> None:
    assert write_units(500) == 1


def test_a_kilobyte_and_one_byte_costs_two_write_units() -> None:
    assert (write_units(KB), write_units(KB + 1)) == (1, 2)


def test_a_2_kb_write_costs_two_units_and_four_in_a_transaction() -> None:
    assert (write_units(2 * KB), write_units(2 * KB, transactional=True)) == (2, 4)


def test_an_8_kb_read_costs_two_units_one_if_eventual_and_four_in_a_transaction() -> None:
    assert read_units(8 * KB, consistent=True) == 2
    assert read_units(8 * KB, consistent=False) == 1
    assert read_units(8 * KB, consistent=True, transactional=True) == 4


def test_a_query_of_40_8_kb_is_charged_as_44_kb() -> None:
    assert read_units(int(40.8 * KB), consistent=True) == 11


def test_a_query_of_1500_items_of_64_bytes_is_charged_as_96_kb() -> None:
    assert read_units(1500 * 64, consistent=True) == 24


def test_an_absent_item_costs_the_least_there_is() -> None:
    assert (read_units(0, consistent=True), read_units(0, consistent=False), write_units(0)) == (1, 0.5, 1)


def test_every_further_region_pays_the_replicated_units_again() -> None:
    assert Cost(requests=2, write_units=3, replicated_units=2).writes_in(3) == 3 + 2 + 2


def test_costs_subtract_to_what_was_done_between() -> None:
    earlier, between = Cost(1, 0.5, 2, 2), Cost(3, 1.5, 1, 0)
    assert earlier + between - earlier == between


@given(SIZES, SIZES)
def test_a_larger_item_never_costs_less(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert write_units(small) <= write_units(large)
    assert read_units(small, consistent=False) <= read_units(large, consistent=False)


@given(SIZES, SIZES)
def test_reading_together_never_costs_more_than_apart(one: int, other: int) -> None:
    apart = read_units(one, consistent=True) + read_units(other, consistent=True)
    assert read_units(one + other, consistent=True) <= apart


@given(ITEMS, st.text(min_size=11, max_size=20), VALUES)
def test_one_attribute_more_makes_an_item_larger(item: dict[str, dict[str, object]], name: str, value: object) -> None:
    assert item_bytes({**item, name: value}) > item_bytes(item)  # type: ignore[dict-item]


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_no_number_is_larger_than_21_bytes(number: int) -> None:
    assert 1 <= number_bytes(str(number)) <= 21
