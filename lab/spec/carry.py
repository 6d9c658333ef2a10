"""Carry.tla: what a period that is over has left goes to the next one."""

from lab.spec.model import Model

CARRY = Model(
    module="Carry",
    usual={"First": "2", "Most": "2", "Ceilings": "{1, 3}", "Sets": "1", "Calls": "{k1, k2}"},
    configurations={
        # Two who carry or set a ceiling at a time, in either period; late changes and holds of the
        # old one beside.
        "carry": {},
        # One at a time, two ceilings set, one after the other.
        "carry-set-twice": {"Sets": "2", "Calls": "{k1}"},
    },
    symmetry="EitherCall",
    promises=(
        "NoCeilingIsPassed",
        "RightsAreConserved",
        "NothingIsMade",
        "NoMoreThanMayBeIsCarried",
    ),
    reasons=(),
    mistakes={
        "OutWithoutEpoch": (
            "carry",
            "rights leave the old gate though its limit is another one than was seen",
        ),
        "InWithoutEpoch": (
            "carry",
            "rights come to the new gate though its limit is another one than was seen",
        ),
        "EpochStays": ("carry", "who carries does not say that the limit is another one"),
        "OutWithoutRights": ("carry", "rights leave the old gate that are not there any more"),
        "CeilingStays": ("carry", "the ceiling does not move with the rights"),
        "TakenAnew": (
            "carry",
            "all that was ever carried is taken over, also what was taken over before",
        ),
        "MoreThanMayBe": ("carry", "the next amount does not regard what was carried before"),
    },
    possible={
        "NeverOnItsWay": ("carry", "what left the old gate has not come to the new one"),
        "NeverAllThatMayBe": ("carry", "all that may be carried has come"),
        "NeverLateBesideACarry": (
            "carry",
            "the old period counts a change, and something was carried",
        ),
    },
)
