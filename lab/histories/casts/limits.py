"""The small casts of limited counters: two or three programs at gates, in one Region or two."""

from dataclasses import replace

from lab.histories.casts.gate_steps import AT_ONCE, LANE, LANE_AWAY, LANE_BESIDE, NEVER
from lab.histories.casts.part import AWAY, Casts, do
from ledger.gate.gate import RELEASED, SLICE_MS

ROUND_MS = SLICE_MS * 2**16
"""After which the time of a fingerprint comes round."""
TWO_ROLLS = (  # the first leaves a fingerprint of what it files, the second has `low` above it
    do.limited(filing=replace(NEVER, slack_ms=250)),
    *(do.asked("one"), do.asked("two", old=100), do.sent("one"), do.two_rolls("two")),
)
FILED = (do.sent("low", old=500), do.rolled())
"""What is older than `low` must be looked up."""

# fmt: off
LIMITED_CASTS: Casts = {
    "an_add_twice_at_once": (  # where there is no gate yet
        do.send("one"), do.send("one", region=AWAY)),
    "two_first_adds_of_the_last_unit_who_send_twice": (
        do.limited(1), do.having(resends=True), do.send("one"), do.send("two")),
    "a_first_add_twice_who_send_twice_against_its_roll": (
        do.limited(1, filing=AT_ONCE), do.having(resends=True), do.send("one"), do.send("one")),
    "a_first_add_against_itself_by_an_earlier_version": (
        do.send("one"), do.send_as_before("one")),
    "two_first_adds_of_the_last_unit_one_by_an_earlier_version": (
        do.limited(1), do.send("one"), do.send_as_before("two")),
    "a_first_group_against_one_of_its_changes_by_an_earlier_version": (
        do.limited(2), do.group("one", "two"), do.send_as_before("two")),
    "a_first_hold_twice_against_a_first_add_of_the_last_unit": (
        do.limited(1), do.to_hold("hold"), do.send("hold"), do.send("hold"), do.send("one")),
    "a_first_hold_that_ends_where_it_was_granted_against_a_first_add": (
        do.limited(2), do.to_hold("hold"), do.hold_and_end("hold", 1), do.send("one")),
    "a_first_add_against_a_tighter_limit": (
        do.limited(1), do.send("one"), do.set_limit(0)),
    "the_first_adds_of_two_regions_of_the_last_unit": (
        do.limited(1, lanes=(LANE, LANE_AWAY)), do.having(steps_max=16),
        do.send("one"), do.send("two", region=AWAY)),
    "a_first_add_beside_a_change_of_its_own_lane": (
        do.limited(1), do.added_beside(LANE, everywhere=True), do.send("one"), do.send("two")),
    # away it arrives at any time, as do the gates
    "the_first_rights_are_opened_beside_a_change_of_another_lane": (
        do.limited(1, lanes=(LANE, LANE_AWAY, LANE_BESIDE)),
        do.added_beside(LANE_BESIDE, everywhere=False),
        do.send_in(LANE), do.send_in(LANE_AWAY, -1)),
    "the_first_gate_of_all_is_opened_beside_a_change_of_another_lane": (
        do.limited(1, lanes=(LANE, LANE_AWAY)), do.added_beside(LANE, everywhere=True),
        do.send_in(LANE_AWAY, -1), do.send_in(LANE)),
    "a_retry_and_an_add_against_a_roll": (
        do.sent("one"), do.send("one"), do.send("two"), do.roll()),
    "a_retry_against_two_rolls": (
        *TWO_ROLLS, do.send("one")),
    "a_retry_in_a_group_against_two_rolls": (
        *TWO_ROLLS, do.asked("three", old=50), do.group("one", "three")),
    "two_rolls_at_once_and_a_retry": (
        do.sent("one"), do.sent("two", old=900), do.roll(), do.roll(), do.send("one")),
    "two_rolls_at_once_of_what_is_late_and_what_is_new": (
        *FILED, do.sent("late"), do.sent("new", old=100),
        do.roll(), do.roll(), do.send("newer", old=50)),
    "a_late_add_twice_at_once_and_its_roll": (
        do.limited(filing=AT_ONCE), *FILED, do.send("late"), do.send("late")),
    "a_late_add_against_two_rolls": (
        *FILED, do.asked("late"), do.sent("new", old=100), do.send("late"), do.roll(), do.roll()),
    "a_late_group_against_one_of_its_changes_and_a_roll": (
        do.limited(4, filing=AT_ONCE), *FILED, do.group("late", "later"), do.send("late")),
    "a_group_against_one_of_its_changes_for_the_last_units": (
        do.limited(2), do.group("one", "two"), do.send("two"), do.send("three")),
    "a_retry_of_what_lies_far_ahead_against_a_roll": (  # it would be taken for one of now
        do.limited(filing=replace(NEVER, beside=0)), do.asked("one", old=-ROUND_MS - SLICE_MS),
        do.sent("one"), do.sent("two"), do.rolled(), do.wait(1_000), do.sent("three", old=0),
        do.roll(), do.roll(), do.send("one")),
    # whose fingerprint would be taken for one of then
    "a_retry_of_what_was_filed_beside_a_hold_of_long_ago": (
        do.limited(filing=replace(NEVER, holds_beside=0, slack_ms=250)), do.held("hold"),
        do.wait(ROUND_MS),
        do.sent("one"), do.rolled(), do.sent("two", old=900), do.end("hold", RELEASED), do.roll(),
        do.send("one")),
    "the_last_unit_in_two_regions": (  # each could take it from the other many times
        do.in_two_regions(1), do.having(steps_max=20), do.send("one"), do.send("two", region=AWAY)),
    "a_unit_for_each_of_two_in_another_region_who_send_twice": (
        do.in_two_regions(2), do.having(resends=True, copies_stay=True),
        do.send("one", region=AWAY), do.send("two", region=AWAY)),
    "the_last_unit_is_given_back_while_another_region_wants_it": (
        do.in_two_regions(1), do.held("hold"), do.end("hold", RELEASED),
        do.send("one", region=AWAY)),
    "the_last_unit_is_given_back_while_two_want_it": (
        do.limited(1), do.held("hold"), do.end("hold", RELEASED), do.send("one"), do.send("two")),
    "a_hold_twice_against_its_roll": (
        do.limited(filing=AT_ONCE), do.to_hold("hold"), do.send("hold"), do.send("hold")),
    # there is room for one hold, not for two
    "a_hold_that_ends_where_it_was_granted_against_its_roll": (
        do.limited(filing=replace(NEVER, holds_beside=999)), do.to_hold("hold"),
        do.to_hold("other"),
        do.hold_and_end("hold", 1), do.send("other"), do.roll()),
    "a_hold_by_name_with_two_lengths_at_once": (
        do.limited(3), do.hold_by_name("hold"), do.hold_by_name("hold", length_ms=10**5)),
    "a_hold_by_name_with_two_lengths_against_its_rolls": (
        do.limited(3, filing=AT_ONCE), do.hold_by_name("hold"),
        do.hold_by_name("hold", length_ms=10**5)),
    "a_hold_by_name_again_with_another_length_against_its_roll_and_its_end": (
        do.held_by_name("hold", length_ms=10**5), do.hold_by_name("hold"), do.roll(),
        do.end("hold", 1)),
    "a_filed_hold_by_name_again_with_another_length_against_its_end_and_a_roll": (
        do.held_by_name("hold", length_ms=10**5), do.rolled(), do.hold_by_name("hold"),
        do.end("hold", 1), do.roll()),
    "a_hold_by_name_with_two_lengths_of_what_is_sold": (
        do.limited(1), do.sent("one"), do.hold_by_name("hold"),
        do.hold_by_name("hold", length_ms=10**5)),
    "a_name_is_closed_against_who_holds_by_it": (
        do.close("hold"), do.hold_by_name("hold", length_ms=10**5)),
    "two_ends_of_a_hold": (
        do.limited(1), do.held("hold"), do.end("hold", 1), do.end("hold", RELEASED),
        do.send("one")),
    "two_ends_of_a_hold_against_its_roll": (
        do.held("hold", 2), do.end("hold", 1), do.end("hold", RELEASED), do.roll()),
    "two_ends_of_a_filed_hold_and_their_rolls": (
        do.held("hold"), do.rolled(), do.file_as(AT_ONCE), do.end("hold", 1),
        do.end("hold", RELEASED)),
    "a_retry_of_a_hold_against_its_end_and_a_roll": (
        do.held("hold"), do.rolled(), do.send("hold"), do.end("hold", 1), do.roll()),
    "two_who_free_a_hold_that_is_over_against_its_capture": (
        do.held("hold", over=True), do.free(), do.free(), do.end("hold", 1)),
    "two_who_free_a_filed_hold_that_is_over_against_its_capture": (
        do.held("hold", over=True), do.rolled(), do.free(), do.free(), do.end("hold", 1)),
    "a_hold_that_is_over_is_freed_for_the_last_unit_against_its_capture_and_a_roll": (
        do.limited(1), do.held("hold", over=True), do.roll(), do.send("one"), do.end("hold", 1)),
    "a_tighter_limit_against_the_last_unit": (
        do.limited(1), do.sent("sold and back"), do.sent("back", -1), do.set_limit(0),
        do.send("one")),
    "two_limits_at_once": (
        do.limited(2), do.sent("one"), do.set_limit(1), do.set_limit(3)),
    "a_wider_limit_against_two_who_want_more_than_there_is": (
        do.limited(1), do.sent("one"), do.set_limit(2), do.send("two"), do.send("three")),
    # The segment that lists the retried token is named by a higher one, which is lost.
    "a_retry_after_a_rebuild_against_a_roll_below_the_name_of_its_segment": (
        do.limited(filing=replace(NEVER, slack_ms=250)), do.sent("high", old=500), do.rolled(),
        do.sent("retried", old=600), do.rolled(), do.rebuilt_from_its_newest_segment(),
        do.asked("between", old=550), do.send("between"), do.roll(), do.send("retried")),
    "two_first_parts_of_what_is_left": (
        do.limited(2), do.take("one"), do.take("two")),
    "a_part_twice_who_send_twice": (
        do.limited(2), do.sent("sold"), do.having(resends=True), do.take("one"), do.take("one")),
    "a_part_twice_against_its_rolls": (
        do.limited(2, filing=AT_ONCE), do.sent("sold"), do.take("one"), do.take("one")),
    "a_late_part_twice_at_once_and_its_roll": (
        do.limited(4, filing=AT_ONCE), *FILED, do.take("late"), do.take("late")),
    "a_part_of_what_two_regions_have": (
        do.in_two_regions(3), do.having(steps_max=14), do.asked("back", -1, region=AWAY),
        do.sent("back"), do.take("one", region=AWAY), do.send("two")),
    # it came before the refusal was written
    "what_comes_back_while_a_part_is_refused": (
        do.limited(3), do.sent("sold", 3), do.take("one"), do.send("back", -2)),
    # another has more than it remembers
    "a_part_by_who_remembers_how_much_was_left": (
        do.in_two_regions(3), do.asked_up_to("one", region=AWAY),
        do.in_turn("one", short=2, left=1, region=AWAY)),
    "two_parts_in_turn_while_something_comes_back_elsewhere": (
        do.in_two_regions(3), do.having(steps_max=22, copies_stay=True),
        *(do.asked_up_to(key, region=AWAY) for key in ("one", "two")),
        do.in_turn("one", "two", region=AWAY), do.send("back", -2)),
    # it knew that all was sold
    "a_process_elsewhere_sets_a_wider_limit_and_sells_what_came_with_it": (
        do.in_two_regions(1), *(do.asked(key, region=AWAY) for key in ("one", "two", "three")),
        do.in_turn("one", "two", 2, "three", region=AWAY)),
    # it remembers that so much was too much
    "a_process_frees_a_hold_and_sells_the_rest_of_it_elsewhere": (
        do.in_two_regions(3), do.held("hold", 3, over=True), do.asked("one"),
        do.asked("two", 2, region=AWAY),
        do.in_turn("one", "two", short=2)),
    "a_history_elsewhere_while_two_rolls_replicate": (
        do.sent("one"), do.rolled(), do.gate_arrives(AWAY), do.sent("two", old=900), do.rolled(),
        do.history(region=AWAY)),
    "a_history_against_two_adds_and_their_rolls": (
        do.sent("one"), do.rolled(), do.file_as(AT_ONCE),
        do.send("two", old=900), do.send("three", old=800), do.history()),
}
