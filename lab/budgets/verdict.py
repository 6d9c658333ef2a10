"""What is right of a customer's budget: while the calls' time runs, and when the last one's is over.

Rule 1: a call that was answered counts its cost once, one that was cut at most that, and any other nothing.
Rule 2: while the time runs, what is held is of processes that died, and of calls whose hold was not decided.
Rule 3: when it is over nothing is held: what is left can be taken, all of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from lab.budgets.caps import ANSWER, CAP, ESTIMATE, REGIONS, TIMEOUT, World
from ledger.errors import LedgerError


@dataclass
class Figures:
    """Of all customers. over, uncounted, doubled, stuck and held are numbers of customers, and 0 where all is right.

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

    @property
    def outcomes(self) -> Counter[str]:
        return sum(self.calls.values(), Counter())

    @property
    def is_right(self) -> bool:
        return not (self.over or self.uncounted or self.doubled or self.stuck or self.held)


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
        figures.over += max(spent, ANSWER * called["answered"]) > CAP
        figures.uncounted += spent + beside < ANSWER * called["answered"]
        figures.doubled += spent + beside > ANSWER * (called["answered"] + called["left"])
        figures.held += not all_can_be_taken(calm, customer, CAP - spent)


def all_can_be_taken(calm: World, customer: str, rest: int) -> bool:
    ledger = calm.ledger(REGIONS[0])
    try:
        if rest > 0:
            ledger.release(ledger.hold(f"llm:{customer}", rest, expires=TIMEOUT))
    except LedgerError:
        return False
    calm.simulation.come_to_rest()
    return calm.reader(REGIONS[0]).standing(f"llm:{customer}").held.up == 0
