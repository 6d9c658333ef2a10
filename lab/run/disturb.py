"""What happens to the processes and the Regions of a run: kills, pauses and partitions.

Rule 1: The seed and the passing of time decide everything.
Rule 2: `turn` never waits.
Rule 3: When it is over, nothing is paused or cut off any more.
"""

import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from signal import SIGCONT, SIGSTOP

from lab.engines.children import Children
from lab.engines.replicator import Replicator
from lab.run.plan import REGIONS, Plan
from lab.run.processes import Processes

Between = tuple[float, float]
FIRST_S = KILL_EVERY_S = PAUSE_EVERY_S = (1.0, 5.0)
PAUSED_S = (0.3, 5.0)
QUIET_S, PARTITIONED_S = (3.0, 10.0), (1.0, 9.0)
MOSTLY_COMPACTORS = 0.8


class Disturber:
    """Disturbs the processes, replication and, through `proxy`, every request."""

    def __init__(
        self,
        plan: Plan,
        children: Children,
        processes: Processes,
        replicator: Replicator,
        proxy: Connection,
    ) -> None:
        self._rng = random.Random(f"{plan.seed} disturber")
        self._children, self._processes, self._replicator, self._proxy = (
            children,
            processes,
            replicator,
            proxy,
        )
        self._paused: dict[str, float] = {}
        self._partitioned = False
        acts = (self._pause, self._cut, *((self._kill,) if plan.profile.kills else ()))
        self._due = {act: time.monotonic() + self._rng.uniform(*FIRST_S) for act in acts}
        self.counts: Counter[str] = Counter()

    def turn(self) -> None:
        """Does what is due."""
        now = time.monotonic()
        for name in [name for name, until in self._paused.items() if until <= now]:
            self._resume(name)
        for act in [act for act, due in self._due.items() if due <= now]:
            self._due[act] = now + self._rng.uniform(*act())

    def clear(self) -> None:
        """Ends every pause and partition."""
        for name in list(self._paused):
            self._resume(name)
        if self._partitioned:
            self._cut()

    # -- each returns how long until it is due again

    def _kill(self) -> Between:
        name = self._someone()
        if self._children.alive(name):  # a writer that has done its share is not
            self._paused.pop(name, None)
            self._children.kill(name)
            self.counts[f"kills of {name.split()[0]}s"] += 1
            self._processes.restart(name)
        return KILL_EVERY_S

    def _pause(self) -> Between:
        name = self._someone()
        if name not in self._paused and self._children.alive(name):
            self._children.signal(name, SIGSTOP)
            self._paused[name] = time.monotonic() + self._rng.uniform(*PAUSED_S)
            self.counts["pauses"] += 1
        return PAUSE_EVERY_S

    def _cut(self) -> Between:
        self._partitioned = not self._partitioned
        self._proxy.send(("partition", self._partitioned))
        self.counts["partitions"] += self._partitioned
        if self._partitioned:
            self._replicator.partition(self._rng.choice(REGIONS))
            return PARTITIONED_S
        self._replicator.heal()
        return QUIET_S

    def _resume(self, name: str) -> None:
        del self._paused[name]
        self._children.signal(name, SIGCONT)

    def _someone(self) -> str:
        return self._rng.choice(
            self._processes.compactors
            if self._rng.random() < MOSTLY_COMPACTORS
            else self._processes.others
        )
