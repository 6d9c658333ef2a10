"""The small casts of limited counters: two or three programs at gates, in one Region or two."""

from dataclasses import replace

from lab.histories.boards import AWAY, HOME
from lab.histories.limited_judge import Asked
from lab.histories.limited_stage import AT_ONCE, LANE, LANE_AWAY, LANE_BESIDE, NEVER, LimitedStage
from ledger.gate import items
from ledger.gate.gate import RELEASED, SLICE_MS
from ledger.requests import Program

ROUND_MS = SLICE_MS * 2**16


def an_add_twice_at_once(stage: LimitedStage) -> None:
    """Where there is no gate yet."""
    one = stage.asked("one")
    stage.send(one)
    stage.send(one, AWAY)


def a_retry_and_an_add_against_a_roll(stage: LimitedStage) -> None:
    one = stage.asked("one")
    stage.sent(one)
    stage.send(one)
    stage.send(stage.asked("two"))
    stage.roll()


def the_first_rights_are_opened_beside_a_change_of_another_lane(stage: LimitedStage) -> None:
    """Away it arrives at any time, as do the gates here and there."""
    stage.limited(1, lanes=(LANE, LANE_AWAY, LANE_BESIDE))
    stage.added_beside(LANE_BESIDE, everywhere=False)
    stage.send(stage.asked_in(LANE))
    stage.send(stage.asked_in(LANE_AWAY, -1), AWAY)


def the_first_gate_of_all_is_opened_beside_a_change_of_another_lane(stage: LimitedStage) -> None:
    stage.limited(1, lanes=(LANE, LANE_AWAY))
    stage.added_beside(LANE, everywhere=True)
    stage.send(stage.asked_in(LANE_AWAY, -1), AWAY)
    stage.send(stage.asked_in(LANE))


def _two_rolls(stage: LimitedStage) -> Asked:
    """The first leaves a fingerprint of what it files, the second has `low` above it."""
    stage.limited(filing=replace(NEVER, slack_ms=250))
    one, two = stage.asked("one"), stage.asked("two", old_ms=100)
    stage.sent(one)

    def rolls() -> Program[None]:
        yield from stage.rolling()
        stage.sent(two)
        yield from stage.rolling()

    stage.enter("two rolls", HOME, rolls)
    return one


def a_retry_against_two_rolls(stage: LimitedStage) -> None:
    stage.send(_two_rolls(stage))


def a_retry_in_a_group_against_two_rolls(stage: LimitedStage) -> None:
    stage.group(_two_rolls(stage), stage.asked("three", old_ms=50))


def two_rolls_at_once_and_a_retry(stage: LimitedStage) -> None:
    one, two = stage.asked("one"), stage.asked("two", old_ms=900)
    stage.sent(one, two)
    stage.roll("one")
    stage.roll("the other")
    stage.send(one)


def two_rolls_at_once_of_what_is_late_and_what_is_new(stage: LimitedStage) -> None:
    stage.sent(stage.asked("low", old_ms=500))
    stage.rolled()
    stage.sent(stage.asked("late"), stage.asked("new", old_ms=100))
    stage.roll("one")
    stage.roll("the other")
    stage.send(stage.asked("newer", old_ms=50))


def _late(stage: LimitedStage, *keys: str) -> list[Asked]:
    """What must be looked up."""
    stage.sent(stage.asked("low", old_ms=500))
    stage.rolled()
    return [stage.asked(key) for key in keys]


def a_late_add_twice_at_once_and_its_roll(stage: LimitedStage) -> None:
    stage.limited(filing=AT_ONCE)
    (late,) = _late(stage, "late")
    stage.send(late)
    stage.send(late)


def a_late_add_against_two_rolls(stage: LimitedStage) -> None:
    (late,) = _late(stage, "late")
    stage.sent(stage.asked("new", old_ms=100))
    stage.send(late)
    stage.roll("one")
    stage.roll("the other")


def a_late_group_against_one_of_its_changes_and_a_roll(stage: LimitedStage) -> None:
    stage.limited(4, filing=AT_ONCE)
    one, two = _late(stage, "late", "later")
    stage.group(one, two)
    stage.send(one)


def a_group_against_one_of_its_changes_for_the_last_units(stage: LimitedStage) -> None:
    stage.limited(2)
    one, two = stage.asked("one"), stage.asked("two")
    stage.group(one, two)
    stage.send(two)
    stage.send(stage.asked("three"))


def a_retry_of_what_lies_far_ahead_against_a_roll(stage: LimitedStage) -> None:
    """The time of a fingerprint comes round: this one would be taken for one of now."""
    stage.limited(filing=replace(NEVER, beside=0))
    one = stage.asked("one", old_ms=-ROUND_MS - SLICE_MS)
    stage.sent(one, stage.asked("two"))
    stage.rolled()
    stage.wait(1_000)
    stage.sent(stage.asked("three", old_ms=0))
    stage.roll("one")
    stage.roll("the other")
    stage.send(one)


def the_last_unit_in_two_regions(stage: LimitedStage) -> None:
    stage.in_two_regions(1)
    stage.steps_max = 20  # each could take it from the other many times
    stage.send(stage.asked("one"))
    stage.send(stage.asked("two", region=AWAY), AWAY)


def a_unit_for_each_of_two_in_another_region_who_send_twice(stage: LimitedStage) -> None:
    stage.in_two_regions(2)
    stage.resends = stage.copies_stay = True
    stage.send(stage.asked("one", region=AWAY), AWAY)
    stage.send(stage.asked("two", region=AWAY), AWAY)


def the_last_unit_is_given_back_while_another_region_wants_it(stage: LimitedStage) -> None:
    stage.in_two_regions(1)
    stage.end(stage.held("hold"), RELEASED)
    stage.send(stage.asked("one", region=AWAY), AWAY)


def the_last_unit_is_given_back_while_two_want_it(stage: LimitedStage) -> None:
    stage.limited(1)
    stage.end(stage.held("hold"), RELEASED)
    stage.send(stage.asked("one"))
    stage.send(stage.asked("two"))


def a_hold_twice_against_its_roll(stage: LimitedStage) -> None:
    stage.limited(filing=AT_ONCE)
    one = stage.to_hold("hold")
    stage.send(one)
    stage.send(one)


def two_ends_of_a_hold(stage: LimitedStage) -> None:
    stage.limited(1)
    one = stage.held("hold")
    stage.end(one, 1)
    stage.end(one, RELEASED)
    stage.send(stage.asked("one"))


def two_ends_of_a_hold_against_its_roll(stage: LimitedStage) -> None:
    one = stage.held("hold", 2)
    stage.end(one, 1)
    stage.end(one, RELEASED)
    stage.roll()


def two_ends_of_a_filed_hold_and_their_rolls(stage: LimitedStage) -> None:
    one = stage.held("hold")
    stage.rolled()
    stage.filed_at_once()
    stage.end(one, 1)
    stage.end(one, RELEASED)


def a_retry_of_a_hold_against_its_end_and_a_roll(stage: LimitedStage) -> None:
    one = stage.held("hold")
    stage.rolled()
    stage.send(one)
    stage.end(one, 1)
    stage.roll()


def two_who_free_a_hold_that_is_over_against_its_capture(stage: LimitedStage) -> None:
    one = stage.held("hold", over=True)
    stage.free("one")
    stage.free("the other")
    stage.end(one, 1)


def two_who_free_a_filed_hold_that_is_over_against_its_capture(stage: LimitedStage) -> None:
    one = stage.held("hold", over=True)
    stage.rolled()
    stage.free("one")
    stage.free("the other")
    stage.end(one, 1)


def a_hold_that_is_over_is_freed_for_the_last_unit_against_its_capture_and_a_roll(stage: LimitedStage) -> None:
    stage.limited(1)
    one = stage.held("hold", over=True)
    stage.roll()
    stage.send(stage.asked("one"))
    stage.end(one, 1)


def a_tighter_limit_against_the_last_unit(stage: LimitedStage) -> None:
    stage.limited(1)
    stage.sent(stage.asked("sold and back"), stage.asked("back", -1))
    stage.set_limit(0)
    stage.send(stage.asked("one"))


def two_limits_at_once(stage: LimitedStage) -> None:
    stage.limited(2)
    stage.sent(stage.asked("one"))
    stage.set_limit(1)
    stage.set_limit(3)


def a_wider_limit_against_two_who_want_more_than_there_is(stage: LimitedStage) -> None:
    stage.limited(1)
    stage.sent(stage.asked("one"))
    stage.set_limit(2)
    stage.send(stage.asked("two"))
    stage.send(stage.asked("three"))


def a_process_elsewhere_sets_a_wider_limit_and_sells_what_came_with_it(stage: LimitedStage) -> None:
    """It knew that all was sold."""
    stage.in_two_regions(1)
    one, two, three = (stage.asked(key, region=AWAY) for key in ("one", "two", "three"))
    stage.in_turn(AWAY, one, two, 2, three)


def a_process_frees_a_hold_and_sells_the_rest_of_it_elsewhere(stage: LimitedStage) -> None:
    """It remembers that so much was too much."""
    stage.in_two_regions(3)
    stage.held("hold", 3, over=True)
    stage.in_turn(HOME, stage.asked("one"), stage.asked("two", 2, region=AWAY), short=2)


def a_history_elsewhere_while_two_rolls_replicate(stage: LimitedStage) -> None:
    stage.sent(stage.asked("one"))
    stage.rolled()
    stage.world.deliver(AWAY, items.gate_key(LANE))
    stage.sent(stage.asked("two", old_ms=900))
    stage.rolled()
    stage.history(AWAY)


def a_history_against_two_adds_and_their_rolls(stage: LimitedStage) -> None:
    stage.sent(stage.asked("one"))
    stage.rolled()
    stage.filed_at_once()
    stage.send(stage.asked("two", old_ms=900))
    stage.send(stage.asked("three", old_ms=800))
    stage.history(HOME)


LIMITED_CASTS = (
    an_add_twice_at_once,
    the_first_rights_are_opened_beside_a_change_of_another_lane,
    the_first_gate_of_all_is_opened_beside_a_change_of_another_lane,
    a_retry_and_an_add_against_a_roll,
    a_retry_against_two_rolls,
    a_retry_in_a_group_against_two_rolls,
    two_rolls_at_once_and_a_retry,
    two_rolls_at_once_of_what_is_late_and_what_is_new,
    a_late_add_twice_at_once_and_its_roll,
    a_late_add_against_two_rolls,
    a_late_group_against_one_of_its_changes_and_a_roll,
    a_group_against_one_of_its_changes_for_the_last_units,
    a_retry_of_what_lies_far_ahead_against_a_roll,
    the_last_unit_in_two_regions,
    a_unit_for_each_of_two_in_another_region_who_send_twice,
    the_last_unit_is_given_back_while_another_region_wants_it,
    the_last_unit_is_given_back_while_two_want_it,
    a_hold_twice_against_its_roll,
    two_ends_of_a_hold,
    two_ends_of_a_hold_against_its_roll,
    two_ends_of_a_filed_hold_and_their_rolls,
    a_retry_of_a_hold_against_its_end_and_a_roll,
    two_who_free_a_hold_that_is_over_against_its_capture,
    two_who_free_a_filed_hold_that_is_over_against_its_capture,
    a_hold_that_is_over_is_freed_for_the_last_unit_against_its_capture_and_a_roll,
    a_tighter_limit_against_the_last_unit,
    two_limits_at_once,
    a_wider_limit_against_two_who_want_more_than_there_is,
    a_process_elsewhere_sets_a_wider_limit_and_sells_what_came_with_it,
    a_process_frees_a_hold_and_sells_the_rest_of_it_elsewhere,
    a_history_elsewhere_while_two_rolls_replicate,
    a_history_against_two_adds_and_their_rolls,
)
