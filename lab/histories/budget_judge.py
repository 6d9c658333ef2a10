"""What is right of a customer's budget after many calls at once: while their time runs, and when it is over.

Rule 1: a call that was answered counts its cost once, one that was cut at most that, and any other nothing.
Rule 2: while the time runs, what is held is of processes that died, and of calls whose hold was not decided.
Rule 3: when it is over nothing is held: what is left can be taken, all of it. One call more that costs far more than
its estimate fills the budget, and the next is refused.
Rule 4: who refuses every call, or decides none, passes no budget either. So most calls must have been decided, some
answered and some refused, and none refused where there was room for sure.
Rule 5: the naive tracker is the measure of how hard the calls are: it must be wrong of every customer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lab.histories.budget_calls import TwoRegions
from ledger.budgets import Budgets, OverBudget
from ledger.errors import LedgerError

TIMEOUT = timedelta(minutes=5)
CAP = 2_000  # micro-dollars a customer
ANSWER = 225  # what LiteLLM's mock answer of gpt-4o costs: 10 tokens in, 20 out
DEAR = 600  # what one answer costs that is longer than was asked for
LONGEST = 21  # tokens of an answer; LiteLLM counts 8 in
ESTIMATE = 20 + 10 * LONGEST

WRONG = {
    "passed": "budgets that were passed",
    "uncounted": "budgets that miss what was answered",
    "doubled": "budgets that count what was not answered",
    "stuck": "budgets that hold what no call is to give back",
    "held": "budgets with something held at the end",
    "unfilled": "budgets with room after a cost that fills them",
    "starved": "budgets that refused what had room",
}


@dataclass
class Figures:
    """calls: how many of each customer's ended in which way; "undecided": the table could not be asked, so something
    may be held. wrong: customers of whom that is so, by the names in WRONG. naive: what each spent by that tracker.
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
        return 2 * calls["undecided"] > calls.total() or not calls["answered"] or not calls["refused"]

    @property
    def is_easy(self) -> bool:
        """Whether the naive tracker was right of any customer, so that the calls were too few or too late to judge."""
        return not self.naive or any(self.naive[customer] <= CAP for customer in self.calls)

    @property
    def is_right(self) -> bool:
        return not (self.wrong.total() or self.is_undecided or self.is_easy)


def judge(world: TwoRegions, figures: Figures) -> None:
    """When no call is open any more."""
    calm = world.calm()
    for customer, calls in figures.calls.items():
        figures.wrong["stuck"] += calm.held(f"llm:{customer}") > ESTIMATE * (calls["died"] + calls["undecided"])
    calm.wait(TIMEOUT)
    for customer, calls in figures.calls.items():
        spent, beside = (calm.spent(f"{name}llm:{customer}") for name in ("", "over:"))
        figures.spent += spent
        least = ANSWER * calls["answered"] + DEAR * calls["dear"]
        granted = calls.total() - calls["refused"]
        wrong = {
            "passed": spent > CAP or least - beside > CAP,
            "uncounted": spent + beside < least,
            "doubled": spent + beside > least + ANSWER * calls["left"],
            "starved": calls["refused"] > 0 and ESTIMATE * (granted + 1) + DEAR * calls["dear"] <= CAP,
            "held": not all_can_be_taken(calm, customer, CAP - spent),
            "unfilled": not can_be_filled(calm, customer),  # last, because it fills the budget
        }
        figures.wrong.update(name for name, is_so in wrong.items() if is_so)


def all_can_be_taken(calm: TwoRegions, customer: str, rest: int) -> bool:
    ledger: Any = calm.ledger()
    try:
        if rest > 0:
            ledger.release(ledger.hold(f"llm:{customer}", rest, expires=TIMEOUT))
    except LedgerError:
        return False
    calm.simulation.come_to_rest()
    return calm.held(f"llm:{customer}") == 0


def can_be_filled(calm: TwoRegions, customer: str) -> bool:
    """Whether a cost above the estimate leaves no room."""
    budgets = Budgets(calm.ledger(), timeout=TIMEOUT, clock=calm.clock)
    try:
        for _ in range(2):
            with budgets.reserve([f"llm:{customer}"], 1) as call:
                call.settle(2 * CAP)
    except LedgerError as error:
        return isinstance(error, OverBudget)
    return False
