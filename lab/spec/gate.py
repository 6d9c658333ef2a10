"""Gate.tla: what a limited lane decides, files, holds and gives to another."""

from lab.spec.model import Model

GATE = Model(
    module="Gate",
    usual={
        "N": "2",
        "Lowering": "{1, 2}",
        "Twos": "{}",
        "Holds": "{}",
        "InLane2": "{}",
        "Lanes": "{1}",
        "Sides": '{"down"}',
        "First": "1",
        "Moves": "0",
        "Alike": "{}",
        "Batch": '"oldest"',
        "Calls": "{k1, k2}",
    },
    configurations={
        # Two changes in one lane, a floor that has room for one; any batches; two calls at a time.
        "gate-two-tokens": {"Batch": '"any"'},
        # Three deliveries in one lane, so none is refused; one call at a time.
        "gate-three-tokens": {"N": "3", "Lowering": "{}", "First": "0", "Calls": "{k1}"},
        # Two changes with one fingerprint; two calls at a time.
        "gate-alike": {"Lowering": "{}", "First": "0", "Alike": "{1, 2}"},
        # One hold of 2, both limits; two calls at a time.
        "gate-hold": {
            "N": "1",
            "Lowering": "{1}",
            "Twos": "{1}",
            "Holds": "{1}",
            "Sides": '{"down", "up"}',
            "First": "2",
        },
        # A hold, and a change that may not find room beside it; one call at a time.
        "gate-hold-and-change": {"Holds": "{1}", "Calls": "{k1}"},
        # A hold, and a delivery that may not find room before the hold is captured; both limits.
        "gate-hold-and-room": {
            "Lowering": "{1}",
            "Holds": "{1}",
            "Sides": '{"down", "up"}',
            "Calls": "{k1}",
        },
        # A change in each of two lanes, a delivery, and a floor that has room for one; nothing is
        # filed.
        "gate-lanes": {
            "N": "3",
            "InLane2": "{2}",
            "Lanes": "{1, 2}",
            "Moves": "2",
            "Batch": '"nothing"',
        },
        # A change in each of two lanes, in lane 2 of 2, a delivery; first rights of 2, of which
        # parts travel.
        "gate-lanes-two": {
            "Twos": "{2}",
            "InLane2": "{2}",
            "Lanes": "{1, 2}",
            "First": "2",
            "Moves": "3",
            "Batch": '"nothing"',
        },
        # A hold in lane 2, which has no rights of its own, and a change in lane 1; one call at a
        # time.
        "gate-lanes-hold": {
            "Holds": "{2}",
            "InLane2": "{2}",
            "Lanes": "{1, 2}",
            "Moves": "1",
            "Calls": "{k1}",
        },
    },
    symmetry="EitherCall",
    promises=(
        "ATokenIsDecidedOnce",
        "AnAnswerIsTheTruth",
        "ARefusalHasACause",
        "NoLimitIsPassed",
        "RightsAreConserved",
        "NoHoldIsLost",
        "TheHistoryIsWhatWasDecided",
    ),
    reasons=("WhatIsListedIsTrue", "ANoteIsOfAHold", "WhatWasFiledIsNotFresh", "ALookUpMayStop"),
    mistakes={
        "LowNotChecked": (
            "gate-two-tokens",
            "an Update does not ask whether the token is above low",
        ),
        "MovedNotChecked": ("gate-two-tokens", "an Update does not ask for the fingerprint"),
        "MovedForgotten": ("gate-two-tokens", "a roll keeps its own fingerprints alone"),
        "GroupChecksOne": (
            "gate-three-tokens",
            "a group asks whether its first token is fresh, and not the others",
        ),
        "SlowWithoutVersion": (
            "gate-alike",
            "what was looked up is decided though something was filed since",
        ),
        "LookUpBeforeVersion": ("gate-hold", "the version is read after the look-up"),
        "FinishWithoutVersion": ("gate-two-tokens", "a roll finishes though another did since"),
        "RemovedBeforePut": (
            "gate-two-tokens",
            "a roll finishes before its copies are acknowledged",
        ),
        "NamedWithoutContent": ("gate-two-tokens", "a segment's name does not tell its content"),
        "LowCanFall": ("gate-three-tokens", "a roll may lower low"),
        "HiCanFall": ("gate-three-tokens", "hi is the highest of the batch, also below top"),
        "FirstSegmentAlone": ("gate-three-tokens", "a look-up reads one segment"),
        "SegmentSaysNewLow": ("gate-three-tokens", "a segment tells the low that the roll leaves"),
        "HoldRemovedBeforePut": (
            "gate-hold",
            "holds leave the gate before their items are acknowledged",
        ),
        "HoldWithoutPrint": ("gate-hold", "a filed hold leaves no fingerprint"),
        "NoteNotLookedUp": ("gate-hold", "a look-up does not ask for the hold item"),
        "NoteBelieved": ("gate-hold", "a filed hold is ended without a look-up of its token"),
        "NoteDeletedFirst": ("gate-hold", "the hold item is deleted before the end is decided"),
        "FiledEndWithoutVersion": (
            "gate-hold",
            "a filed hold ends though something was filed since",
        ),
        "EndWithoutCondition": ("gate-hold", "an end does not ask that the gate has the hold"),
        "NoSecondLook": ("gate-hold", "NoSuchHold is told after one look at the gate"),
        "DifferenceKept": ("gate-hold", "what a capture does not use stays away"),
        "RoomNotKept": ("gate-hold", "a hold credits the opposite right before its capture"),
        "OneLaneAsked": ("gate-lanes", "refused when this lane has too little"),
        "RightsAreSummed": ("gate-lanes", "rights are summed, and what is on its way is not"),
        "GiveWithoutCondition": ("gate-lanes", "a lane gives what it may not have"),
        "TakeOverWithoutComparing": (
            "gate-lanes",
            "a take-over does not compare what was taken over before",
        ),
    },
    possible={
        "NeverACopyOfALostRoll": (
            "gate-two-tokens",
            "two rolls put copies for one version, and one of them finishes",
        ),
        "NeverALateItem": ("gate-two-tokens", "a token at or below low is filed"),
        "NeverDecidedThoughLow": (
            "gate-two-tokens",
            "a token at or below low is decided, by the slow path",
        ),
        "NeverPastASegment": (
            "gate-three-tokens",
            "a look-up reads past a segment, and the token is new",
        ),
        "NeverALookUpForAnother": (
            "gate-alike",
            "a new token is looked up for the fingerprint of another",
        ),
        "NeverAnItemOfADecidedHold": (
            "gate-hold",
            "there is an item of a hold that has ended and been filed",
        ),
        "NeverAnEndOfAFiledHold": ("gate-hold", "a hold that was filed ends"),
        "NeverASecondLook": (
            "gate-hold",
            "a hold is in neither place, and is looked for once more",
        ),
        "NeverRefusedThoughThereIsRoom": (
            "gate-hold-and-change",
            "refused beside a hold that is released later",
        ),
        "NeverSoldElsewhere": ("gate-lanes", "a lane sells a right that the other gave"),
    },
)
