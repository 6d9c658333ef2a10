"""What is said of a sum: lost, doubled, false, missing, beyond a limit."""

from lab.compare.changes import BASE, SLOTS, Counted, Reads, Record
from lab.compare.scenarios import EU, US


def test_a_read_of_an_event_that_nobody_has_asked_for_yet_is_false() -> None:
    record = Record(units=False)
    record.asked.add(0)
    record.saw(1, ())
    assert record.reads == Reads(1)
    record.saw(1 + BASE, ())
    assert record.reads == Reads(2, 1)


def test_an_event_that_is_never_answered_is_neither_lost_nor_acknowledged() -> None:
    record = Record(units=False)
    record.asked |= {0, 1}
    record.answered(0, EU, "recorded")
    assert record.ended([1]) == Counted(2, gave_up=1)
    assert record.ended([1 + BASE]) == Counted(2, gave_up=1)
    record.answered(1, EU, "refused")
    assert record.ended([1]) == Counted(2)


def test_a_sum_names_an_event_up_to_seven_times_and_the_worst_region_counts() -> None:
    record = Record(units=False)
    for number in range(SLOTS + 3):
        record.asked.add(number)
        record.answered(number, US, "replayed")
    right = sum(map(record.change, record.asked))
    assert record.ended([right, right + 6 * BASE**4]).doubled == 6
    assert record.ended([right, right - BASE**4]).lost == 1
    assert record.ended([right - 4 * BASE ** (SLOTS - 1)]).lost == 4


def test_changes_of_1_tell_only_the_difference() -> None:
    record = Record(units=True)
    record.asked |= {0, 1, 2}
    assert [record.change(number) for number in record.asked] == [1, 1, 1]
    for number in record.asked:
        record.answered(number, EU, "recorded")
    assert [record.ended([value]) for value in (2, 3, 5)] == [Counted(3, 1), Counted(3), Counted(3, 0, 2)]
