"""Counter.tla: adds, packs, reads, fold, settle and clean of one lane."""

from lab.spec.model import Model

COUNTER = Model(
    module="Counter",
    usual={
        "N": "2",
        "Regions": "{1}",
        "ByHome": "{{1}, {2}}",
        "ByAway": "{}",
        "LateRetries": "TRUE",
        "Compactors": "{k1}",
        "Reads": "{}",
        "AnyClock": "FALSE",
    },
    configurations={
        # One delta, put through both Regions; one compactor; strong reads in both Regions.
        "one-delta": {
            "N": "1",
            "Regions": "{1, 2}",
            "ByHome": "{{1}}",
            "ByAway": "{{1}}",
            "Reads": '{"home", "away"}',
        },
        # Two deltas, one Region, one compactor; strong reads.
        "one-region": {"Reads": '{"home"}'},
        # Two deltas, one Region, two compactors; no reads.
        "two-compactors": {"Compactors": "{k1, k2}"},
        # Three deltas, one Region, one compactor that folds up to any cutoff; no reads.
        "three-deltas": {"N": "3", "ByHome": "{{1}, {2}, {3}}", "AnyClock": "TRUE"},
        # Two deltas, one Region, any cutoff; eventually consistent reads.
        "lagging-node": {"Reads": '{"eventual"}', "AnyClock": "TRUE"},
        # Two deltas, the second put through Region 2 only; any cutoff; strong reads in Region 2.
        "fail-over": {
            "Regions": "{1, 2}",
            "ByHome": "{{1}}",
            "ByAway": "{{2}}",
            "Reads": '{"away"}',
            "AnyClock": "TRUE",
        },
        # A pack and its deltas alone; one Region, one compactor; strong reads.
        "packs": {"ByHome": "{{2}, {1, 2}}", "Reads": '{"home"}'},
        # A pack, put through both Regions; any cutoff; strong reads in Region 2.
        "packs-two-regions": {
            "Regions": "{1, 2}",
            "ByHome": "{{1, 2}}",
            "ByAway": "{{1, 2}}",
            "Reads": '{"away"}',
            "AnyClock": "TRUE",
        },
        # A pack and one of its deltas alone, two compactors that fold up to any cutoff; no reads.
        "packs-two-compactors": {
            "ByHome": "{{2}, {1, 2}}",
            "Compactors": "{k1, k2}",
            "AnyClock": "TRUE",
        },
        # A delta between the two of a pack; one Region, one compactor; strong reads.
        "packs-apart": {
            "N": "3",
            "ByHome": "{{2}, {1, 3}}",
            "LateRetries": "FALSE",
            "Reads": '{"home"}',
        },
    },
    unfinished=frozenset({"packs-apart"}),
    symmetry="EitherCompactor",
    promises=(
        "EveryReadIsATrueSum",
        "AHomeReadHoldsWhatCameOnTime",
        "WhatWasKnownStays",
        "InTheEndEachCountsOnce",
    ),
    reasons=(
        "TheTotalIsTheSegments",
        "NothingIsLost",
        "OnTimeIsNeverAStray",
        "WhoHasBegunSeesAllSegments",
        "TheLaneIsNeverDamaged",
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
        "CleanAnyVersion": (
            "one-region",
            "clean deletes what a later version than the noted one lists",
        ),
        "ForgetSegments": ("one-delta", "segments are deleted with their deltas"),
        "CountTwice": ("packs", "a read counts a delta in every item that holds it"),
        "CountBelow": ("packs", "a read counts what a pack holds at or below the watermark"),
        "FoldWholePacks": ("packs-apart", "fold takes what a pack holds above the cutoff, too"),
        "FoldUptoCutoff": ("packs-apart", "fold looks at no pack that reaches above the cutoff"),
        "FoldIncomplete": ("packs-apart", "fold commits what it has, whatever later packs hold"),
        "FoldOnThoughMoved": (
            "packs-two-compactors",
            "fold goes on with what it read, though another has folded",
        ),
        "CleanAnyListed": ("packs", "clean deletes a pack of which one delta is listed"),
        "CleanHighestListed": ("packs", "clean deletes a pack whose highest delta is listed"),
    },
    possible={
        "NeverAllSettledAndCleaned": (
            "fail-over",
            "every delta folded or settled, then deleted in both Regions",
        ),
        "NeverARetryAfterTheClean": ("one-delta", "a deleted delta is put again through Region 2"),
        "NeverAReadOverFoldAndNote": (
            "one-delta",
            "a read runs on while its tail is folded and noted",
        ),
        "NeverAStrayOutOfAnAwayRead": ("fail-over", "a stray leaves the reads of Region 2"),
        "NeverAReadFromALaggingNode": (
            "lagging-node",
            "an eventually consistent read misses something",
        ),
        "NeverTwoCommitsAtOneVersion": (
            "two-compactors",
            "two compactors are about to commit the same version",
        ),
        "NeverOneInTwoItems": ("packs", "a read counts a delta that stands in two items"),
        "NeverAStrayInAPackAcrossTheWatermark": (
            "packs-apart",
            "a pack that reaches above the watermark has a stray",
        ),
        "NeverInOtherCompanyAfterTheClean": (
            "packs",
            "a deleted delta is put again in a pack with a new one",
        ),
    },
    only_mistaken=frozenset({"Counter.ReadTotalTooLate", "Counter.SegmentForgotten"}),
)
