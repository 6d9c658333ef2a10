"""What is right of a customer's budget: while the calls' time runs, and when the last one's is over.

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

from integrations.budgets import Budgets
from integrations.reserving import OverBudget
from lab.budgets.caps import ANSWER, CAP, DEAR, ESTIMATE, REGIONS, TIMEOUT, World
from ledger.errors import LedgerError


@dataclass
class Figures:
    """Of all customers. over, uncounted, doubled, stuck, held, unfilled and starved are numbers of customers, and 0
    where all is right.

    calls: how many of each customer's ended in which way; "undecided": the table could not be asked, so something may
    be held.
    """

    calls: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    naive: Counter[str] = field(default_factory=Counter)
    spent: int = 0
    over: int = 0
    uncounted: int = 0
    doubled: int = 0
    stuck: int = 0
    held: int = 0
    unfilled: int = 0
    starved: int = 0

    @property
    def outcomes(self) -> Counter[str]:
        return sum(self.calls.values(), Counter())

    @property
    def undecided(self) -> bool:
        """Whether so few calls were decided that the rest proves nothing."""
        calls = self.outcomes
        return 2 * calls["undecided"] > calls.total() or not calls["answered"] or not calls["refused"]

    @property
    def is_easy(self) -> bool:
        """Whether the naive tracker was right of any customer, so that the calls were too few or too late to judge."""
        return not self.naive or any(self.naive[customer] <= CAP for customer in self.calls)

    @property
    def is_right(self) -> bool:
        wrong = self.over or self.uncounted or self.doubled or self.stuck or self.held or self.unfilled or self.starved
        return not (wrong or self.undecided or self.is_easy)


def judge(world: World, figures: Figures) -> None:
    """When no call is open any more."""
    calm = world.calm()
    reader = calm.reader(REGIONS[0])
    for customer, called in figures.calls.items():
        held = reader.standing(f"llm:{customer}").held.up or 0
        figures.stuck += held > ESTIMATE * (called["died"] + called["undecided"])
    calm.simulation.wait(int(TIMEOUT.total_seconds() * 1000))
    for customer, called in figures.calls.items():
        spent, beside = (reader.read(f"{name}llm:{customer}").value for name in ("", "over:"))
        figures.spent += spent
        said = ANSWER * called["answered"] + DEAR * called["dear"]
        figures.over += spent > CAP or said - beside > CAP
        figures.uncounted += spent + beside < said
        figures.doubled += spent + beside > said + ANSWER * called["left"]
        figures.starved += is_starved(called)
        figures.held += not all_can_be_taken(calm, customer, CAP - spent)
        figures.unfilled += not can_be_filled(calm, customer)


def is_starved(called: Counter[str]) -> bool:
    """Whether a call was refused though the estimates of all that were not leave room for it."""
    granted = called.total() - called["refused"]
    return called["refused"] > 0 and ESTIMATE * (granted + 1) + DEAR * called["dear"] <= CAP


def can_be_filled(calm: World, customer: str) -> bool:
    """Whether a cost above the estimate leaves no room. What is judged before it is judged already."""
    budgets = Budgets(calm.ledger(REGIONS[0]), timeout=TIMEOUT, clock=calm.simulation.clock)
    try:
        for _ in range(2):
            with budgets.reserve([f"llm:{customer}"], 1) as call:
                call.settle(2 * CAP)
    except LedgerError as error:
        return isinstance(error, OverBudget)
    return False


def all_can_be_taken(calm: World, customer: str, rest: int) -> bool:
    ledger = calm.ledger(REGIONS[0])
    try:
        if rest > 0:
            ledger.release(ledger.hold(f"llm:{customer}", rest, expires=TIMEOUT))
    except LedgerError:
        return False
    calm.simulation.come_to_rest()
    return calm.reader(REGIONS[0]).standing(f"llm:{customer}").held.up == 0
