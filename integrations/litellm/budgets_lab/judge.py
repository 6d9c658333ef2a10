"""What is right of a customer's budget after many calls at once: while their time runs, and when it
is over.

Rule 1: a call that was answered counts its cost once, one that was cut at most that, and any other
nothing.
Rule 2: while the time runs, what is held is of processes that died, and of calls whose hold was not
decided.
Rule 3: who refuses every call, or decides none, passes no budget either. So most calls must have
been decided, some answered and some refused, and none refused where there was room for sure.
Rule 4: the naive tracker is the measure of how hard the calls are: it must be wrong of every
customer.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

from lab.histories.parts.budgets import WRONG, TwoRegions, wrong_of

TIMEOUT = timedelta(minutes=5)
CAP = 2_000  # micro-dollars a customer
ANSWER = 225  # what LiteLLM's mock answer of gpt-4o costs: 10 tokens in, 20 out
DEAR = 600  # what one answer costs that is longer than was asked for
LONGEST = 21  # tokens of an answer; LiteLLM counts 8 in
ESTIMATE = 20 + 10 * LONGEST

LINES = WRONG | {"starved": "budgets that refused what had room"}


@dataclass
class Figures:
    """calls: how many of each customer's ended in which way; "undecided": the table could not be
    asked, so something may be held. wrong: customers of whom that is so, by the names in LINES.
    naive: what each spent by that tracker.
    """

    calls: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    naive: Counter[str] = field(default_factory=Counter)
    spent: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    @property
    def outcomes(self) -> Counter[str]:
        return sum(self.calls.values(), Counter())

    @property
    def is_undecided(self) -> bool:
        """Whether so few calls were decided that the rest proves nothing."""
        calls = self.outcomes
        return (
            2 * calls["undecided"] > calls.total() or not calls["answered"] or not calls["refused"]
        )

    @property
    def is_easy(self) -> bool:
        """Whether the naive tracker was right of any customer, so that the calls were too few or
        too late to judge.
        """
        return not self.naive or any(self.naive[customer] <= CAP for customer in self.calls)

    @property
    def is_right(self) -> bool:
        return not (self.wrong.total() or self.is_undecided or self.is_easy)


def judge(world: TwoRegions, figures: Figures) -> None:
    calm = world.calm()
    for customer, calls in figures.calls.items():
        figures.wrong["stuck"] += calm.held(f"llm:{customer}") > ESTIMATE * (
            calls["died"] + calls["undecided"]
        )
    calm.wait(TIMEOUT)
    for customer, calls in figures.calls.items():
        figures.spent += calm.spent(f"llm:{customer}")
        least = ANSWER * calls["answered"] + DEAR * calls["dear"]
        figures.wrong.update(
            wrong_of(calm, f"llm:{customer}", least, least + ANSWER * calls["left"])
        )
        granted = calls.total() - calls["refused"]
        had_room = ESTIMATE * (granted + 1) + DEAR * calls["dear"] <= CAP
        figures.wrong["starved"] += calls["refused"] > 0 and had_room
