"""The faults of a history, and how often they happen: each history gets its own mix.

Rule 1: Frequencies are per thousand requests or steps.
Rule 2: A mix is drawn from the history's own choices, and most faults are off in most histories
(swarm testing: https://doi.org/10.1145/2338965.2336763), because a history with every fault at once
rarely gets far enough to show one.
"""

from dataclasses import dataclass

from simulator.choices import Choices


@dataclass(frozen=True, slots=True)
class Faults:
    """How often a request meets each fault, per thousand; clocks are milliseconds.

    - throttled: the table refuses it. conflicting: the table refuses it, because of a write of the
      same item in another Region.
    - dropped: it never arrives, and gets no answer. lost: the table applies it, and the answer is
      lost. late: it gets no answer, and the table applies it some time after. unreadable: a read
      gets no answer.
    - cut: per thousand steps, a Region is cut off or joined again.
    - lag_steps: how far an eventually consistent read may lag.
    - slow_replication: items arrive in other Regions an order of magnitude later. slow_landing: a
      transaction's items become visible an order of magnitude later.
    - crash: the process ends and starts again. pause: the process stands still for 20 to 1,000
      steps, and its monotonic clock too if `frozen`. skew_ms: how wrong clocks may be.
    - slow_reads, slow_visits: readers or compactors stand still for a few steps between their
      requests.
    - remade: a Region's replica is lost and made again from what the others hold, once in a
      history.

    A Simulation, the double for tests of your own, plays all faults of requests and Regions:
    throttled, conflicting, dropped, lost, late, unreadable, cut, lag_steps, slow_replication and
    slow_landing. It refuses the others, with ValueError: they happen to the processes of a history.
    """

    throttled: int = 0
    conflicting: int = 0
    dropped: int = 0
    lost: int = 0
    late: int = 0
    unreadable: int = 0
    crash: int = 0
    pause: int = 0
    frozen: bool = False
    cut: int = 0
    skew_ms: int = 0
    lag_steps: int = 0
    slow_replication: bool = False
    slow_landing: bool = False
    slow_reads: bool = False
    slow_visits: bool = False
    remade: bool = False


NONE = Faults()
OF_PROCESSES = ("crash", "pause", "frozen", "skew_ms", "slow_reads", "slow_visits", "remade")


def mix(choices: Choices) -> Faults:
    """A mix of faults for one history."""

    def rate(most: int, per_mille: int = 400) -> int:
        return choices.pick(most) + 1 if choices.chance(per_mille) else 0

    return Faults(
        throttled=rate(60),
        dropped=rate(80),
        lost=rate(150),
        late=rate(120),
        unreadable=rate(40),
        crash=rate(60),
        pause=rate(60, 600),
        frozen=choices.chance(300),
        cut=rate(20),
        skew_ms=rate(100),
        lag_steps=rate(60),
        slow_replication=choices.chance(500),
        slow_landing=choices.chance(400),
        slow_reads=choices.chance(500),
        slow_visits=choices.chance(500),
        remade=choices.chance(250),
    )
