"""The judge of calls of holds in several wallets that several processes share.

Rule 1: one key and list is one call, whatever the length: each wallet is held once for it, at every
write of a gate.
Rule 2: the answer of a call is one. Who was refused is the last word of a call for ever, and so is
that it has ended; what was granted may end. A time that is over before anything was decided may be
corrected, by a longer one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lab.histories.stage.judge import Judge
from ledger.core import tokens
from ledger.core.requests import Item, Key
from ledger.core.values import Lane
from ledger.gate import items

AFTER = {
    "refused": {"refused"},
    "ended": {"ended"},
    "held": {"held", "ended"},
    "over": {"refused", "held", "ended"},
}
"""What may be answered after an answer; "over": its time is over, and nothing was decided."""


@dataclass
class Call:
    """A call of holds, as it is named. told: what its callers were told."""

    key: str
    at: datetime
    region: str
    wallets: Sequence[str]
    amount: int
    told: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Told:
    """before: what was told when the attempt began. Two that overlap may be told that it is held,
    and has ended.
    """

    call: Call
    answer: str
    before: set[str]


@dataclass
class SharedHolds(Judge):
    held: dict[tuple[str, bytes], str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def at_write(self, region: str, key: Key, item: Item | None) -> None:
        kind, _, text = key.pk.partition("#")
        if kind != "gate" or item is None:
            return
        lane = Lane.parse(text)
        for token in items.gate_of(lane, item).held:
            of = lane.counter, tokens.to_bytes(token)[:14]  # all but the length
            if self.held.setdefault(of, token) != token:
                self.wrong.append(
                    f"{lane.counter} is held twice for one call: {self.held[of]}, {token}"
                )

    def at_answer(self, answer: object) -> None:
        if not isinstance(answer, Told):
            return
        call, said = answer.call, answer.answer
        call.told.add(said)
        not_after = [was for was in answer.before - {"over"} if said not in AFTER[was]]
        if not_after or ("refused" in call.told and call.told & {"held", "ended"}):
            self.wrong.append(f"{call.key} is {said}, and was {', '.join(sorted(call.told))}")
