"""The models: which configurations each has, what it promises, and which mistakes must be found in it.

Rule 1: a model is one module, `<module>.tla`; a configuration is one file, `<name>.cfg`, and belongs to one model.
Rule 2: a mistake is a value of the constant `Mistake`: the rule that is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """quick, slow, large: its configurations. promises: the invariants of which a mistake must break one.

    mistakes: the rule that is left out: the configuration that finds it, and what is done instead. possible: the
    invariant that must fail: the configuration, and what happens then. only_mistaken: actions that only a mistake makes
    possible.
    """

    module: str
    quick: tuple[str, ...]
    slow: tuple[str, ...]
    large: tuple[str, ...]
    promises: tuple[str, ...]
    mistakes: Mapping[str, tuple[str, str]]
    possible: Mapping[str, tuple[str, str]]
    only_mistaken: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """All its configurations."""
        return (*self.quick, *self.slow, *self.large)


COUNTER = Model(
    module="Counter",
    quick=(
        *("one-delta", "one-region", "two-compactors", "three-deltas", "lagging-node", "fail-over"),
        *("packs", "packs-two-regions", "packs-two-compactors"),
    ),
    slow=(
        "one-delta-two-compactors",
        "two-regions",
        "two-regions-two-compactors",
        "three-deltas-two-compactors",
        "three-deltas-read",
        "packs-apart",
    ),
    large=("large",),
    promises=(
        "EveryReadIsATrueSum",
        "AHomeReadHoldsWhatCameOnTime",
        "WhatWasKnownStays",
        "InTheEndEachCountsOnce",
    ),
    mistakes={
        "NoBegin": ("one-region", "fold and settle do not look for the last segment"),
        "NoBeginInFold": ("three-deltas", "only fold does not"),
        "NoBeginInSettle": ("one-region", "only settle does not"),
        "NoVersionCondition": ("two-compactors", "a commit does not ask for the version"),
        "SegmentsBeforeCheckpoint": ("two-compactors", "settle reads the segments, then begins"),
        "StaleConfirm": ("one-region", "settle confirms with eventually consistent reads"),
        "NewHi": ("three-deltas", "settle files under the stray's token instead of its cover"),
        "CutoffAfterQuery": ("one-region", "fold fixes the cutoff after its Query"),
        "TailBeforeCheckpoint": ("one-delta", "a read gets the total after the tail"),
        "LongRead": ("one-delta", "a read may last longer than keep"),
        "DeleteAtFold": ("one-delta", "fold deletes what it folds"),
        "CleanAtFirstVisit": ("one-delta", "clean does not wait for keep"),
        "CleanWithoutOtherRegions": ("one-delta", "clean does not ask the other Region"),
        "TimeBeforeAnswers": ("one-delta", "clean takes the time before the other Region answers"),
        "CleanUnlisted": ("one-region", "clean deletes what no segment lists"),
        "CleanAnyVersion": ("one-region", "clean deletes what a later version than the noted one lists"),
        "ForgetSegments": ("one-delta", "segments are deleted with their deltas"),
        "CountTwice": ("packs", "a read counts a delta in every item that holds it"),
        "CountBelow": ("packs", "a read counts what a pack holds at or below the watermark"),
        "FoldWholePacks": ("packs-apart", "fold takes what a pack holds above the cutoff, too"),
        "FoldUptoCutoff": ("packs-apart", "fold looks at no pack that reaches above the cutoff"),
        "FoldIncomplete": ("packs-apart", "fold commits what it has, whatever later packs hold"),
        "FoldOnThoughMoved": ("packs-two-compactors", "fold goes on with what it read, though another has folded"),
        "CleanAnyListed": ("packs", "clean deletes a pack of which one delta is listed"),
        "CleanHighestListed": ("packs", "clean deletes a pack whose highest delta is listed"),
    },
    possible={
        "NeverAllSettledAndCleaned": ("fail-over", "every delta folded or settled, then deleted in both Regions"),
        "NeverARetryAfterTheClean": ("one-delta", "a deleted delta is put again through Region 2"),
        "NeverAReadOverFoldAndNote": ("one-delta", "a read runs on while its tail is folded and noted"),
        "NeverAStrayOutOfAnAwayRead": ("fail-over", "a stray leaves the reads of Region 2"),
        "NeverAReadFromALaggingNode": ("lagging-node", "an eventually consistent read misses something"),
        "NeverTwoCommitsAtOneVersion": ("two-compactors", "two compactors are about to commit the same version"),
        "NeverOneInTwoItems": ("packs", "a read counts a delta that stands in two items"),
        "NeverAStrayInAPackAcrossTheWatermark": ("packs-apart", "a pack that reaches above the watermark has a stray"),
        "NeverInOtherCompanyAfterTheClean": ("packs", "a deleted delta is put again in a pack with a new one"),
    },
    only_mistaken=frozenset({"ReadTotalTooLate", "SegmentForgotten"}),
)

GATE = Model(
    module="Gate",
    quick=(
        *("gate-two-tokens", "gate-three-tokens", "gate-alike"),
        *("gate-hold", "gate-hold-and-change", "gate-hold-and-room"),
        *("gate-lanes", "gate-lanes-two", "gate-lanes-hold"),
    ),
    slow=("gate-three-tokens-two-calls", "gate-three-tokens-refused", "gate-hold-and-change-two-calls"),
    large=(),
    promises=(
        "ATokenIsDecidedOnce",
        "AnAnswerIsTheTruth",
        "ARefusalHasACause",
        "NoLimitIsPassed",
        "RightsAreConserved",
        "NoHoldIsLost",
        "TheHistoryIsWhatWasDecided",
    ),
    mistakes={
        "LowNotChecked": ("gate-two-tokens", "an Update does not ask whether the token is above low"),
        "MovedNotChecked": ("gate-two-tokens", "an Update does not ask for the fingerprint"),
        "MovedForgotten": ("gate-two-tokens", "a roll keeps its own fingerprints alone"),
        "GroupChecksOne": ("gate-three-tokens", "a group asks whether its first token is fresh, and not the others"),
        "SlowWithoutVersion": ("gate-alike", "what was looked up is decided though something was filed since"),
        "LookUpBeforeVersion": ("gate-hold", "the version is read after the look-up"),
        "FinishWithoutVersion": ("gate-two-tokens", "a roll finishes though another did since"),
        "RemovedBeforePut": ("gate-two-tokens", "a roll finishes before its copies are acknowledged"),
        "NamedWithoutContent": ("gate-two-tokens", "a segment's name does not tell its content"),
        "LowCanFall": ("gate-three-tokens", "a roll may lower low"),
        "HiCanFall": ("gate-three-tokens", "hi is the highest of the batch, also below top"),
        "FirstSegmentAlone": ("gate-three-tokens", "a look-up reads one segment"),
        "SegmentSaysNewLow": ("gate-three-tokens", "a segment tells the low that the roll leaves"),
        "HoldRemovedBeforePut": ("gate-hold", "holds leave the gate before their items are acknowledged"),
        "HoldWithoutPrint": ("gate-hold", "a filed hold leaves no fingerprint"),
        "NoteNotLookedUp": ("gate-hold", "a look-up does not ask for the hold item"),
        "NoteBelieved": ("gate-hold", "a filed hold is ended without a look-up of its token"),
        "NoteDeletedFirst": ("gate-hold", "the hold item is deleted before the end is decided"),
        "FiledEndWithoutVersion": ("gate-hold", "a filed hold ends though something was filed since"),
        "EndWithoutCondition": ("gate-hold", "an end does not ask that the gate has the hold"),
        "NoSecondLook": ("gate-hold", "NoSuchHold is told after one look at the gate"),
        "DifferenceKept": ("gate-hold", "what a capture does not use stays away"),
        "RoomNotKept": ("gate-hold", "a hold credits the opposite right before its capture"),
        "OneLaneAsked": ("gate-lanes", "refused when this lane has too little"),
        "RightsAreSummed": ("gate-lanes", "rights are summed, and what is on its way is not"),
        "GiveWithoutCondition": ("gate-lanes", "a lane gives what it may not have"),
        "TakeOverWithoutComparing": ("gate-lanes", "a take-over does not compare what was taken over before"),
    },
    possible={
        "NeverACopyOfALostRoll": ("gate-two-tokens", "two rolls put copies for one version, and one of them finishes"),
        "NeverALateItem": ("gate-two-tokens", "a token at or below low is filed"),
        "NeverDecidedThoughLow": ("gate-two-tokens", "a token at or below low is decided, by the slow path"),
        "NeverPastASegment": ("gate-three-tokens", "a look-up reads past a segment, and the token is new"),
        "NeverALookUpForAnother": ("gate-alike", "a new token is looked up for the fingerprint of another"),
        "NeverAnItemOfADecidedHold": ("gate-hold", "there is an item of a hold that has ended and been filed"),
        "NeverAnEndOfAFiledHold": ("gate-hold", "a hold that was filed ends"),
        "NeverASecondLook": ("gate-hold", "a hold is in neither place, and is looked for once more"),
        "NeverRefusedThoughThereIsRoom": ("gate-hold-and-change", "refused beside a hold that is released later"),
        "NeverSoldElsewhere": ("gate-lanes", "a lane sells a right that the other gave"),
    },
)

MODELS = (COUNTER, GATE)
